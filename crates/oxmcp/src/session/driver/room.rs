//! How much room for output a connection keeps.

/// How much room a buffer always keeps.
const SMALL: usize = 64 << 10;
/// How much it keeps at most, when messages that large have gone through it of late: fresh memory costs more than writing
/// to it.
const LARGE: usize = 2 << 20;
/// After how many writes it is seen how much room was needed of late.
const REVIEW_WRITES: u32 = 64;

/// What was learnt about how much room a connection's output needs.
#[derive(Debug)]
pub(crate) struct Room {
    /// A buffer that is larger is freed once it is empty.
    kept: usize,
    /// The most that was written at once since the last review.
    peak: usize,
    writes: u32,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            kept: SMALL,
            peak: 0,
            writes: 0,
        }
    }
}

impl Room {
    /// Empties a buffer that was written, and keeps its room where it will be needed again.
    pub(crate) fn clear(&mut self, written: &mut Vec<u8>) {
        self.note(written.len());
        if written.capacity() > self.kept {
            *written = Vec::new();
        }
        written.clear();
    }

    /// So much was written at once.
    fn note(&mut self, written: usize) {
        self.peak = self.peak.max(written);
        let wanted = |peak: usize| peak.saturating_mul(4).clamp(SMALL, LARGE);
        self.kept = self.kept.max(wanted(written));
        self.writes += 1;
        if self.writes == REVIEW_WRITES {
            self.kept = wanted(self.peak);
            self.peak = 0;
            self.writes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(room: &mut Room, length: usize) -> usize {
        let mut batch = vec![b' '; length];
        room.clear(&mut batch);
        assert!(batch.is_empty());
        batch.capacity()
    }

    #[test]
    fn room_is_kept_for_as_long_as_it_is_needed() {
        let room = &mut Room::default();
        assert_eq!(write(room, LARGE + 1), 0);
        for _ in 0..REVIEW_WRITES {
            assert_eq!(write(room, 1 << 20), 1 << 20);
        }
        for _ in 0..REVIEW_WRITES * 2 {
            write(room, 10);
        }
        assert_eq!(room.kept, SMALL);
    }
}
