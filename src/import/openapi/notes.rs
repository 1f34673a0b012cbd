//! What is other about a tool than its description says.

/// Most notes of one operation, and of the document.
const NOTES_MAX: usize = 24;

/// Notes without repetition, each with what it is about.
#[derive(Debug, Default)]
pub(super) struct Notes {
    listed: Vec<String>,
    about: String,
    more: bool,
}

impl Notes {
    /// What the notes that follow are about: `query limit`; nothing where empty.
    pub(super) fn about(&mut self, about: impl Into<String>) {
        self.about = about.into();
    }

    pub(super) fn add(&mut self, note: impl AsRef<str>) {
        let note = note.as_ref();
        let note =
            if self.about.is_empty() { note.to_owned() } else { format!("{}: {note}", self.about) };
        if self.listed.contains(&note) {
            return;
        }
        if self.listed.len() < NOTES_MAX { self.listed.push(note) } else { self.more = true }
    }

    pub(super) fn into_vec(mut self) -> Vec<String> {
        if self.more {
            self.listed.push("there is more of this kind".to_owned());
        }
        self.listed
    }
}
