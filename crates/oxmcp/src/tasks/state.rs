//! Conversion of a task record into the [`TaskState`] that the owner of the task sees.

use oxmcp_protocol::TaskStatus;

use super::{
    record::{TaskOutcome, TaskRecord},
    wire::TaskState,
};

impl TaskState {
    /// The answer to a call that became a task, without questions and outcome.
    pub(crate) fn created(task: &TaskRecord) -> Self {
        Self {
            task_id: task.id.clone(),
            status: task.status.clone(),
            status_message: task.status_message.clone(),
            created_at: iso_8601(task.created_ms),
            last_updated_at: iso_8601(task.updated_ms),
            ttl_ms: Some(task.ttl_ms),
            poll_interval_ms: Some(task.poll_interval_ms),
            input_requests: None,
            result: None,
            error: None,
        }
    }

    /// The whole state, with the questions or the outcome.
    pub(crate) fn of(task: &TaskRecord) -> Self {
        let mut state = Self::created(task);
        if task.status == TaskStatus::InputRequired {
            let questions = task.questions.iter();
            let questions = questions.map(|(key, question)| (key.clone(), question.clone().into()));
            state.input_requests = Some(questions.collect());
        }
        match &task.outcome {
            Some(TaskOutcome::Result(result)) => state.result = Some(result.clone()),
            Some(TaskOutcome::Error(error)) => state.error = Some(error.clone()),
            None => {}
        }
        state
    }
}

/// A time since 1970 in ISO 8601, in UTC. The calendar algorithm is Howard Hinnant's `civil_from_days`.
pub(crate) fn iso_8601(ms: u64) -> String {
    let (days, ms) = (ms / 86_400_000, ms % 86_400_000);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    // Years begin in March here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let ms = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_iso_8601() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(ms), expected);
        }
    }
}
