//! Which members or items of a value some keyword has spoken of.

/// A bit for each, by its place.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<bool>);

impl Marks {
    pub(super) fn mark(&mut self, index: usize) {
        if self.0.len() <= index {
            self.0.resize(index + 1, false);
        }
        if let Some(mark) = self.0.get_mut(index) {
            *mark = true;
        }
    }

    pub(super) fn has(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or(false)
    }

    pub(super) fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for index in (0..other.0.len()).filter(|index| other.has(*index)) {
            self.mark(index);
        }
    }
}
