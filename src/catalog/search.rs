//! Finding tools by words: for client applications that are given a search instead of a list.
//!
//! An inverted index over names, titles, descriptions, field names and their descriptions, ranked
//! as BM25F does: a word counts by the weight of where it stands, less in long texts, more where
//! few tools have it. All of that is reckoned when the index is built; a search adds whole numbers
//! up, so its order is the same on every machine, and ties go by the order of the tools.
//!
//! Costs for 5,000 tools of 60 different words each, in release: a search of three words 15 µs
//! expected, 40 µs measured; the worst queries (16 words, most of which every tool has) 300 µs
//! expected, 230 µs measured; building 100 ms expected, 75 ms measured, so an index is built off
//! the cores and only for views that search. 1.3 MB: four bytes an occurrence, and the words.
//!
//! Whatever a query holds, it is cut to [`QUERY_BYTES_MAX`] and [`QUERY_WORDS_MAX`].

use std::collections::{HashMap, VecDeque};

mod words;

use serde_json::Value;

use words::{Compounds, for_each_word};

/// What of a query is read, in bytes.
pub const QUERY_BYTES_MAX: usize = 512;
/// Words of a query that count; those after them do not.
pub const QUERY_WORDS_MAX: usize = 16;
/// Most places a search gives.
pub const FOUND_MAX: usize = 50;

/// What of one text is indexed, in bytes: the first part of a long description says what it is.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Fields of a tool that are indexed.
const FIELDS_MAX: usize = 500;
/// Tools an index holds; those after them are not found.
const TOOLS_MAX: usize = 1 << POSTING_TOOL_BITS;

/// How many units a word is worth, by where it stands.
const NAME: f32 = 8.0;
const TITLE: f32 = 5.0;
const TOOLSET: f32 = 2.0;
const DESCRIPTION: f32 = 2.0;
const FIELD_NAME: f32 = 1.0;
const FIELD_DESCRIPTION: f32 = 0.5;

/// BM25: how soon more of the same word stops to count, and how much the length of a text does.
const K1: f32 = 1.2;
const B: f32 = 0.6;

const POSTING_TOOL_BITS: u32 = 20;
const POSTING_IMPACT_BITS: u32 = 12;
const IMPACT_MAX: u32 = (1 << POSTING_IMPACT_BITS) - 1;
/// A rare word's value, of 10 bits, so that 16 words' sums stay far within 32 bits.
const RARITY_MAX: f32 = 1023.0;
/// A word that only begins with the last one of the query: three fifths of its worth.
const PREFIX_FIFTHS: u32 = 3;
/// A shorter beginning says nothing.
const PREFIX_BYTES_MIN: usize = 2;

/// What is searched of one tool.
#[derive(Debug, Clone, Default)]
pub struct SearchText<'a> {
    /// What clients call it by.
    pub name: &'a str,
    /// For people.
    pub title: Option<&'a str>,
    /// What the model reads.
    pub description: &'a str,
    /// The toolset it belongs to.
    pub toolset: &'a str,
    /// Its arguments at every depth: name and description.
    pub fields: Vec<(&'a str, &'a str)>,
}

/// The fields of a schema at every depth, each with its description, for [`SearchText::fields`].
///
/// At most 500 of them, those nearest to the top first.
pub fn schema_fields(schema: &Value) -> Vec<(&str, &str)> {
    let mut fields = Vec::new();
    let mut waiting = VecDeque::from([schema]);
    while let Some(schema) = waiting.pop_front() {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if fields.len() == FIELDS_MAX {
                return fields;
            }
            let description = property.get("description").and_then(Value::as_str);
            fields.push((name.as_str(), description.unwrap_or_default()));
            waiting.push_back(property);
        }
        waiting.extend(["items", "additionalProperties"].iter().filter_map(|key| schema.get(key)));
    }
    fields
}

/// Words of some tools, and where they stand. See the module.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// All different words, sorted, one after the other.
    text: Box<str>,
    /// Where each word ends in `text`.
    ends: Box<[u32]>,
    /// Where the postings of each word end.
    postings_ends: Box<[u32]>,
    /// A word's worth by how few tools have it.
    rarities: Box<[u16]>,
    postings: Box<[Posting]>,
    /// A hash of each tool's name as words: who types the name gets the tool.
    names: Box<[u64]>,
}

/// A tool, and what a word in it is worth.
#[derive(Debug, Clone, Copy)]
struct Posting(u32);

impl Posting {
    fn new(tool: u32, impact: u32) -> Self {
        Self(tool << POSTING_IMPACT_BITS | impact.min(IMPACT_MAX))
    }

    fn tool(self) -> usize {
        (self.0 >> POSTING_IMPACT_BITS) as usize
    }

    fn impact(self) -> u32 {
        self.0 & IMPACT_MAX
    }
}

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its place among the tools the index was built of.
    pub place: usize,
    /// The higher, the better; only to be compared with others of the same search.
    pub score: u64,
}

impl SearchIndex {
    /// Builds the index of `tools`, in the order in which ties are given: that of their names.
    pub fn build<'a>(tools: impl IntoIterator<Item = SearchText<'a>>) -> Self {
        let mut building = Building::default();
        tools.into_iter().take(TOOLS_MAX).for_each(|tool| building.add(&tool));
        building.finish()
    }

    /// How many tools it holds.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.text.len()
            + 4 * (self.ends.len() + self.postings_ends.len() + self.postings.len())
            + 2 * self.rarities.len()
            + 8 * self.names.len()
    }

    /// The best `limit` tools for a query, at most [`FOUND_MAX`], best first.
    ///
    /// A tool is found that has at least one of the words; one that has more of them comes before
    /// one that has fewer, by as much as the words are worth. The last word may be the beginning
    /// of one.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Found> {
        let query = Query::read(query);
        let Some(last) = query.words.last() else { return Vec::new() };
        let mut scores = vec![Score::default(); self.len()];
        for (index, word) in query.words.iter().enumerate() {
            let exact = self.place_of(word);
            if let Ok(place) = exact {
                self.add(place, 5, index, &mut scores);
            }
            if std::ptr::eq(word, last) && query.is_last_open && word.len() >= PREFIX_BYTES_MIN {
                let from = exact.map_or_else(|place| place, |place| place + 1);
                let begins = |place: &usize| self.word(*place).starts_with(word.as_str());
                for place in (from..self.ends.len()).take_while(begins) {
                    self.add(place, PREFIX_FIFTHS, index, &mut scores);
                }
            }
        }
        self.best(&scores, &query, limit.min(FOUND_MAX))
    }

    fn word(&self, place: usize) -> &str {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[place] as usize]
    }

    /// The place of a word, or where it would be.
    fn place_of(&self, word: &str) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.word(middle).cmp(word) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Counts one word of the index for the `index`th of the query, by `fifths` of its worth.
    fn add(&self, place: usize, fifths: u32, index: usize, scores: &mut [Score]) {
        let start = place.checked_sub(1).map_or(0, |before| self.postings_ends[before] as usize);
        let worth = u32::from(self.rarities[place]) * fifths / 5;
        for posting in &self.postings[start..self.postings_ends[place] as usize] {
            scores[posting.tool()].add(index, worth * posting.impact());
        }
    }

    fn best(&self, scores: &[Score], query: &Query, limit: usize) -> Vec<Found> {
        let words = query.words.len() as u64;
        let mut found: Vec<Found> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| score.words != 0)
            .map(|(place, score)| {
                let matched = u64::from(score.words.count_ones());
                let is_named = self.names[place] == query.name;
                // The name itself beats whatever else there is.
                let bonus = if is_named { 1 << 40 } else { 0 };
                let sum = u64::from(score.sum) + u64::from(score.current);
                Found { place, score: bonus + sum * matched * matched / (words * words) }
            })
            .collect();
        let order = |one: &Found, other: &Found| {
            other.score.cmp(&one.score).then(one.place.cmp(&other.place))
        };
        if limit < found.len() {
            if limit == 0 {
                return Vec::new();
            }
            found.select_nth_unstable_by(limit - 1, order);
            found.truncate(limit);
        }
        found.sort_unstable_by(order);
        found
    }
}

/// What a tool has gathered in a search.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    /// Of the words before the last one it has.
    sum: u32,
    /// Of the last one: the best of those that begin with it.
    current: u32,
    /// A bit for each word of the query it has.
    words: u16,
}

impl Score {
    fn add(&mut self, index: usize, worth: u32) {
        let bit = 1_u16 << index;
        if self.words & bit == 0 {
            self.words |= bit;
            self.sum += std::mem::replace(&mut self.current, worth);
        } else {
            self.current = self.current.max(worth);
        }
    }
}

/// A query, taken apart.
struct Query {
    /// Different words, in their order.
    words: Vec<String>,
    /// Whether the last one may go on: nothing stands after it.
    is_last_open: bool,
    /// The hash of all words: that of a tool whose name they are.
    name: u64,
}

impl Query {
    fn read(text: &str) -> Self {
        let mut read = &text[..text.floor_char_boundary(QUERY_BYTES_MAX)];
        if read.len() < text.len() {
            // The half of a word at the cut is none.
            read = read
                .rfind(|letter: char| !letter.is_alphanumeric())
                .map_or(read, |end| &read[..end]);
        }
        let mut words: Vec<String> = Vec::new();
        let mut name = NAME_SEED;
        let mut is_cut = read.len() < text.len();
        for_each_word(read, Compounds::Parts, |word| {
            name = with_word(name, word);
            if words.len() == QUERY_WORDS_MAX {
                is_cut = true;
                return;
            }
            // The last one is the one that may go on, wherever it stood before.
            if let Some(before) = words.iter().position(|known| known == word) {
                words.remove(before);
            }
            words.push(word.to_owned());
        });
        let ends_open = read.chars().next_back().is_some_and(char::is_alphanumeric);
        let is_last_open = ends_open && !is_cut;
        Self { words, is_last_open, name }
    }
}

const NAME_SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over the words of a name, each with an end.
fn with_word(hash: u64, word: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    step(word.bytes().fold(hash, step), 0xff)
}

/// A word in a tool while the index is built: how much it counts, by kind of text.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    tool: u32,
    short: f32,
    long: f32,
}

/// An index that is being built.
#[derive(Default)]
struct Building {
    words: Words,
    names: Vec<u64>,
    /// Words in the description and the fields of each tool, whose length varies.
    lengths: Vec<u32>,
}

/// The words so far, each with the tools that have it.
#[derive(Default)]
struct Words {
    places: HashMap<String, usize>,
    occurrences: Vec<Vec<Occurrence>>,
}

impl Words {
    /// The occurrence of a word in a tool. Tools come one after the other: it is the last one.
    fn occurrence(&mut self, word: &str, tool: u32) -> &mut Occurrence {
        let place = self.places.get(word).copied().unwrap_or_else(|| {
            self.places.insert(word.to_owned(), self.occurrences.len());
            self.occurrences.push(Vec::new());
            self.occurrences.len() - 1
        });
        let occurrences = &mut self.occurrences[place];
        if occurrences.last().is_none_or(|last| last.tool != tool) {
            occurrences.push(Occurrence { tool, short: 0.0, long: 0.0 });
        }
        let last = occurrences.len() - 1;
        &mut occurrences[last]
    }
}

impl Building {
    fn add(&mut self, tool: &SearchText<'_>) {
        let mut name = NAME_SEED;
        for_each_word(bounded(tool.name), Compounds::Parts, |word| name = with_word(name, word));
        let place = self.names.len() as u32;
        self.names.push(name);
        self.lengths.push(0);
        for (text, worth) in [(tool.name, NAME), (tool.toolset, TOOLSET)] {
            self.short(place, text, worth);
        }
        self.short(place, tool.title.unwrap_or_default(), TITLE);
        self.long(place, tool.description, DESCRIPTION);
        for (name, description) in &tool.fields {
            self.long(place, name, FIELD_NAME);
            self.long(place, description, FIELD_DESCRIPTION);
        }
    }

    /// A text whose words count the same however many there are.
    fn short(&mut self, tool: u32, text: &str, worth: f32) {
        let words = &mut self.words;
        for_each_word(bounded(text), Compounds::PartsAndWhole, |word| {
            words.occurrence(word, tool).short += worth;
        });
    }

    /// A text whose words count less the more there are.
    fn long(&mut self, tool: u32, text: &str, worth: f32) {
        let (words, length) = (&mut self.words, &mut self.lengths[tool as usize]);
        for_each_word(bounded(text), Compounds::PartsAndWhole, |word| {
            *length += 1;
            words.occurrence(word, tool).long += worth;
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of tools and words, for a mean")]
    #[expect(clippy::cast_sign_loss, reason = "impacts and rarities are not negative")]
    fn finish(self) -> SearchIndex {
        let tools = self.names.len() as f32;
        let all: u64 = self.lengths.iter().map(|length| u64::from(*length)).sum();
        let mean = (all as f32 / tools.max(1.0)).max(1.0);
        let Words { places, mut occurrences } = self.words;
        let mut words: Vec<(String, usize)> = places.into_iter().collect();
        words.sort_unstable();
        let rarest = rarity(tools, 1.0);
        let mut text = String::new();
        let (mut ends, mut postings_ends) = (Vec::new(), Vec::new());
        let (mut rarities, mut postings) = (Vec::new(), Vec::new());
        for (word, place) in &words {
            let occurrences = std::mem::take(&mut occurrences[*place]);
            text.push_str(word);
            ends.push(text.len() as u32);
            let worth = rarity(tools, occurrences.len() as f32) / rarest;
            rarities.push((worth * RARITY_MAX).clamp(1.0, RARITY_MAX) as u16);
            postings.extend(occurrences.iter().map(|occurrence| {
                let length = self.lengths[occurrence.tool as usize] as f32;
                let count = occurrence.short + occurrence.long / (1.0 - B + B * length / mean);
                let impact = count / (K1 + count) * IMPACT_MAX as f32;
                Posting::new(occurrence.tool, (impact as u32).max(1))
            }));
            postings_ends.push(postings.len() as u32);
        }
        SearchIndex {
            text: text.into(),
            ends: ends.into(),
            postings_ends: postings_ends.into(),
            rarities: rarities.into(),
            postings: postings.into(),
            names: self.names.into(),
        }
    }
}

/// How much a word tells that `holders` of `tools` have.
fn rarity(tools: f32, holders: f32) -> f32 {
    (1.0 + (tools - holders + 0.5) / (holders + 0.5)).ln()
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
#[path = "search/tests.rs"]
mod tests;
