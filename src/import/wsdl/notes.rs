//! What an operator is told.

use super::super::clean;

/// Most notes that one thing may have.
const NOTES_MAX: usize = 30;
/// Longest note.
const NOTE_CHARS_MAX: usize = 400;

/// Notes without repetition, in the order they came up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Notes {
    notes: Vec<String>,
    more: usize,
}

impl Notes {
    pub(super) fn add(&mut self, note: impl Into<String>) {
        let note = clean::line(&note.into(), NOTE_CHARS_MAX);
        if self.notes.contains(&note) {
            return;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn extend(&mut self, others: &Self) {
        others.notes.iter().for_each(|note| self.add(note.clone()));
        self.more += others.more;
    }

    pub(super) fn into_list(self) -> Vec<String> {
        let mut notes = self.notes;
        if self.more > 0 {
            notes.push(format!("and {} more", self.more));
        }
        notes
    }
}

/// Sentences one behind the other, each with a full stop.
pub(super) fn sentences<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !out.is_empty() {
            out.push_str(if out.ends_with(['.', '!', '?', ':', ';', '…']) { " " } else { ". " });
        }
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_told_once_and_bounded() {
        let mut notes = Notes::default();
        (0..40).for_each(|index| notes.add(format!("{index}")));
        notes.add("1");
        let told = notes.into_list();
        assert_eq!((told.len(), told.last().unwrap().as_str()), (31, "and 10 more"));
    }

    #[test]
    fn sentences_end_with_a_full_stop() {
        assert_eq!(sentences(["A", "", "B.", "C"]), "A. B. C");
    }
}
