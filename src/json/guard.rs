//! The guard: one scan without recursion over bytes that nobody has looked at yet.
//!
//! Expected: under 300 ns for an envelope of 150 bytes. Measured on one core of a shared machine:
//! 69 ns for a ping of 41 bytes, 197 ns for a call of 138, 0.78 GB/s over large structured bodies,
//! 5.8 GB/s over long strings. `sonic_rs` needs 163 ns to skip the same call with a check of the
//! grammar only. Behind the guard its lazy iterators are no faster than `Raw` (113 ns against
//! 203 for the members of the call), because they check the text once more.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use super::text::{decode, hex_unit, is_leading_surrogate, is_trailing_surrogate, plain_run_end};
use super::{DEPTH_MAX, JsonError, Raw};

/// Keys of one object that are compared one by one; from here on a hash set keeps it linear.
const COMPARED_KEYS_MAX: usize = 32;
/// A hash set of at most this capacity is kept for the next large object of the same text:
/// clearing costs its capacity, so a huge one must not be cleared again and again.
const SPARE_CAPACITY_MAX: usize = 512;
/// How much of a duplicate key an error shows.
const SHOWN_KEY_CHARS_MAX: usize = 64;

/// Proof that a text passed the [`guard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked<'a>(&'a str);

impl<'a> Checked<'a> {
    /// The whole text, with the blanks around the value as they came.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The one value of the text.
    pub fn root(self) -> Raw<'a> {
        Raw::new(self.0.trim_matches([' ', '\t', '\n', '\r']))
    }
}

/// Checks bytes from outside: UTF-8, depth, grammar and repeated keys, in one linear scan.
///
/// It accepts what RFC 8259 calls a JSON text, as `serde_json` reads it (no byte order mark, no
/// lone surrogates), except that numbers may be of any size.
///
/// # Errors
///
/// The first fault found from the left; see [`JsonError`].
pub fn guard(bytes: &[u8]) -> Result<Checked<'_>, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)?;
    Scan::new(text).run()?;
    Ok(Checked(text))
}

/// An array or object that is open at the scanner's place.
enum Frame {
    Array,
    /// Its keys are `Scan::keys[first_key..]`, or the last of `Scan::sets` once `hashed`.
    Object {
        first_key: usize,
        hashed: bool,
    },
}

/// A key of an open object. Without escapes it is `Scan::text[start..end]`; decoded ones stand in
/// `Scan::decoded`, whose bytes count on from the end of the text.
#[derive(Clone, Copy)]
struct Key {
    /// Cheap to compare; equal keys have equal fingerprints.
    fingerprint: u32,
    start: usize,
    end: usize,
}

/// Keys by their hash; one whose hash is taken by another key stands at the next number.
type KeySet = HashMap<u64, Key, BuildHasherDefault<Hashed>>;

/// Passes on a number that is a hash already, so that a growing set need not read its keys again.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

struct Scan<'a> {
    text: &'a str,
    frames: SmallVec<[Frame; 16]>,
    /// Keys of all open objects, the innermost last.
    keys: SmallVec<[Key; 16]>,
    /// Keys that had escapes, one after the other.
    decoded: String,
    /// Keys of the open objects that outgrew comparison, the innermost last.
    sets: Vec<KeySet>,
    spare_set: Option<KeySet>,
    /// Made with the first set. Its secret keeps senders from choosing keys that collide.
    hasher: Option<RandomState>,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            frames: SmallVec::new(),
            keys: SmallVec::new(),
            decoded: String::new(),
            sets: Vec::new(),
            spare_set: None,
            hasher: None,
        }
    }

    fn run(mut self) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        loop {
            at = skip_blanks(bytes, at);
            at = match peek(bytes, at) {
                b'"' => string_end(bytes, at + 1)? + 1,
                b'{' => {
                    let first_key = self.keys.len();
                    self.open(Frame::Object { first_key, hashed: false })?;
                    at = skip_blanks(bytes, at + 1);
                    if peek(bytes, at) != b'}' {
                        at = self.key(at, "a key or '}'")?;
                        continue;
                    }
                    self.close();
                    at + 1
                }
                b'[' => {
                    self.open(Frame::Array)?;
                    at = skip_blanks(bytes, at + 1);
                    if peek(bytes, at) != b']' {
                        continue;
                    }
                    self.close();
                    at + 1
                }
                b'-' | b'0'..=b'9' => number_end(bytes, at)?,
                b't' => literal_end(bytes, at, b"true")?,
                b'f' => literal_end(bytes, at, b"false")?,
                b'n' => literal_end(bytes, at, b"null")?,
                _ => return Err(malformed(at, "a value")),
            };
            match self.after_value(at)? {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
    }

    /// What follows a value: closed containers, then the place of the next value, or `None` at
    /// the end of the text.
    fn after_value(&mut self, mut at: usize) -> Result<Option<usize>, JsonError> {
        let bytes = self.text.as_bytes();
        loop {
            at = skip_blanks(bytes, at);
            let byte = peek(bytes, at);
            match self.frames.last() {
                Some(Frame::Object { .. }) => match byte {
                    b',' => {
                        at = skip_blanks(bytes, at + 1);
                        return self.key(at, "a key").map(Some);
                    }
                    b'}' => self.close(),
                    _ => return Err(malformed(at, "',' or '}'")),
                },
                Some(Frame::Array) => match byte {
                    b',' => return Ok(Some(at + 1)),
                    b']' => self.close(),
                    _ => return Err(malformed(at, "',' or ']'")),
                },
                None if at == bytes.len() => return Ok(None),
                None => return Err(malformed(at, "the end of the text")),
            }
            at += 1;
        }
    }

    #[inline]
    fn open(&mut self, frame: Frame) -> Result<(), JsonError> {
        if self.frames.len() == DEPTH_MAX {
            return Err(JsonError::TooDeep);
        }
        self.frames.push(frame);
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        if let Some(Frame::Object { first_key, hashed }) = self.frames.pop() {
            self.keys.truncate(first_key);
            if hashed {
                self.spare_set = self.sets.pop().filter(|set| set.capacity() <= SPARE_CAPACITY_MAX);
            }
        }
    }

    /// A key with its colon; the answer stands after the colon.
    #[inline]
    fn key(&mut self, at: usize, expected: &'static str) -> Result<usize, JsonError> {
        let bytes = self.text.as_bytes();
        if peek(bytes, at) != b'"' {
            return Err(malformed(at, expected));
        }
        let mut end = plain_run_end(bytes, at + 1);
        if peek(bytes, end) == b'"' {
            let fingerprint = fingerprint(bytes.get(at + 1..end).unwrap_or_default());
            self.remember_key(Key { fingerprint, start: at + 1, end }, at)?;
        } else {
            end = string_end(bytes, end)?;
            self.remember_escaped_key(at, end)?;
        }
        let colon = skip_blanks(bytes, end + 1);
        if peek(bytes, colon) != b':' {
            return Err(malformed(colon, "':'"));
        }
        Ok(colon + 1)
    }

    #[cold]
    fn remember_escaped_key(&mut self, quote: usize, end: usize) -> Result<(), JsonError> {
        let text = decode(self.text.get(quote + 1..end).unwrap_or_default());
        let fingerprint = fingerprint(text.as_bytes());
        let start = self.text.len() + self.decoded.len();
        self.decoded.push_str(&text);
        self.remember_key(Key { fingerprint, start, end: start + text.len() }, quote)
    }

    #[inline]
    fn remember_key(&mut self, key: Key, offset: usize) -> Result<(), JsonError> {
        let Some(&Frame::Object { first_key, hashed }) = self.frames.last() else {
            return Ok(());
        };
        let known = self.keys.get(first_key..).unwrap_or_default();
        if hashed || known.len() == COMPARED_KEYS_MAX {
            return self.remember_hashed(key, offset);
        }
        for other in known {
            if other.fingerprint == key.fingerprint && self.key_text(*other) == self.key_text(key) {
                return Err(duplicate(self.key_text(key), offset));
            }
        }
        self.keys.push(key);
        Ok(())
    }

    /// Moves the keys of the innermost object into a set, unless they are there, and adds one.
    #[cold]
    fn remember_hashed(&mut self, key: Key, offset: usize) -> Result<(), JsonError> {
        if let Some(Frame::Object { first_key, hashed: hashed @ false }) = self.frames.last_mut() {
            *hashed = true;
            let first_key = *first_key;
            let mut set = self.spare_set.take().unwrap_or_default();
            set.clear();
            self.sets.push(set);
            while let Some(known) = self.keys.get(first_key..).and_then(<[Key]>::last).copied() {
                self.keys.pop();
                self.insert_hashed(known);
            }
        }
        if self.insert_hashed(key) { Ok(()) } else { Err(duplicate(self.key_text(key), offset)) }
    }

    /// Whether the key was new.
    fn insert_hashed(&mut self, key: Key) -> bool {
        let Some(mut set) = self.sets.pop() else { return true };
        let hasher = self.hasher.get_or_insert_default().clone();
        let text = self.key_text(key);
        let mut hash = hasher.hash_one(text);
        let new = loop {
            match set.entry(hash) {
                Entry::Vacant(free) => {
                    free.insert(key);
                    break true;
                }
                Entry::Occupied(taken) if self.key_text(*taken.get()) == text => break false,
                Entry::Occupied(_) => hash = hash.wrapping_add(1),
            }
        };
        self.sets.push(set);
        new
    }

    #[inline]
    fn key_text(&self, key: Key) -> &[u8] {
        match key.start.checked_sub(self.text.len()) {
            None => self.text.as_bytes().get(key.start..key.end).unwrap_or_default(),
            Some(start) => {
                let end = start + (key.end - key.start);
                self.decoded.as_bytes().get(start..end).unwrap_or_default()
            }
        }
    }
}

#[cold]
fn duplicate(key: &[u8], offset: usize) -> JsonError {
    let key = String::from_utf8_lossy(key);
    let key = key.chars().take(SHOWN_KEY_CHARS_MAX).collect::<String>().into_boxed_str();
    JsonError::DuplicateKey { key, offset }
}

#[cold]
fn malformed(offset: usize, expected: &'static str) -> JsonError {
    JsonError::Malformed { offset, expected }
}

/// Length and three bytes of the text.
#[inline]
fn fingerprint(bytes: &[u8]) -> u32 {
    let byte = |at: usize| peek(bytes, at);
    let length = bytes.len();
    let last = byte(length.wrapping_sub(1));
    u32::from_le_bytes([length.to_le_bytes()[0], byte(0), byte(length / 2), last])
}

/// The byte at `at`; 0 at the end, which fits nowhere in JSON.
#[inline]
fn peek(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

#[inline]
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(peek(bytes, at), b' ' | b'\n' | b'\r' | b'\t') {
        at += 1;
    }
    at
}

/// Checks a string from behind its opening quote; the answer is where the closing quote stands.
#[inline]
fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    loop {
        at = plain_run_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at),
            Some(b'\\') => at = escape_end(bytes, at)?,
            Some(_) => return Err(malformed(at, "no control character in a string")),
            None => return Err(malformed(at, "the string to be closed")),
        }
    }
}

/// `at` stands on the backslash, the answer behind the escape.
fn escape_end(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match peek(bytes, at + 1) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => return Ok(at + 2),
        b'u' => {}
        _ => return Err(malformed(at + 1, "one of \"\\/bfnrtu after a backslash")),
    }
    let digits = || malformed(at + 2, "four hexadecimal digits");
    let unit = hex_unit(bytes, at + 2).ok_or_else(digits)?;
    if is_trailing_surrogate(unit) {
        return Err(malformed(at, "a leading surrogate before a trailing one"));
    }
    if !is_leading_surrogate(unit) {
        return Ok(at + 6);
    }
    // RFC 8259 section 7: a character outside the basic plane is a pair of escapes.
    let paired = peek(bytes, at + 6) == b'\\'
        && peek(bytes, at + 7) == b'u'
        && hex_unit(bytes, at + 8).is_some_and(is_trailing_surrogate);
    if paired { Ok(at + 12) } else { Err(malformed(at + 6, "a trailing surrogate")) }
}

/// RFC 8259 section 6; the size of the number does not matter.
#[inline]
fn number_end(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start + usize::from(peek(bytes, start) == b'-');
    at = match peek(bytes, at) {
        b'0' => at + 1,
        _ => digits_end(bytes, at)?,
    };
    if peek(bytes, at) == b'.' {
        at = digits_end(bytes, at + 1)?;
    }
    if matches!(peek(bytes, at), b'e' | b'E') {
        at += 1;
        at += usize::from(matches!(peek(bytes, at), b'+' | b'-'));
        at = digits_end(bytes, at)?;
    }
    Ok(at)
}

/// One digit or more.
#[inline]
fn digits_end(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start;
    while peek(bytes, at).is_ascii_digit() {
        at += 1;
    }
    if at == start { Err(malformed(at, "a digit")) } else { Ok(at) }
}

#[inline]
fn literal_end(bytes: &[u8], at: usize, literal: &'static [u8]) -> Result<usize, JsonError> {
    let end = at + literal.len();
    if bytes.get(at..end) == Some(literal) {
        Ok(end)
    } else {
        Err(malformed(at, "true, false or null"))
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
pub(crate) mod tests;
