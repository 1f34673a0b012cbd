//! One scan over a text before the parser sees it.
//!
//! The parser is linear in the text only as long as elements have few attributes and few
//! namespaces: it compares all attributes of an element with each other, and for every element that
//! declares a namespace it copies those in force, comparing each with all it has copied. It sets memory aside by the count of `<` and
//! `=`. So these are counted here. Where a text is malformed the scan may count wrongly from there
//! on; the parser ends at that place, so what it does before is what was counted.

use memchr::{memchr, memchr_iter, memmem};

use super::{ATTRIBUTES_MAX, DEPTH_MAX, Limits, NAMESPACES_MAX, XmlError};

/// Most comparisons of namespaces: of every document, for each byte more, and of the largest.
const COMPARED_MIN: usize = 4_000_000;
const COMPARED_PER_BYTE: usize = 16;
const COMPARED_MAX: usize = 256_000_000;

/// Refuses what has a `DOCTYPE` or is larger than the limits.
pub(super) fn check(text: &str, limits: Limits) -> Result<(), XmlError> {
    if text.len() > limits.bytes {
        return Err(XmlError::TooLarge { bytes_max: limits.bytes });
    }
    let bytes = text.as_bytes();
    let too_many = XmlError::TooManyNodes { nodes_max: limits.nodes };
    let most = usize::try_from(limits.nodes).unwrap_or(usize::MAX).saturating_mul(4);
    if memchr_iter(b'<', bytes).count() > most || memchr_iter(b'=', bytes).count() > most {
        return Err(too_many);
    }
    let comparable = COMPARED_MIN.saturating_add(bytes.len().saturating_mul(COMPARED_PER_BYTE));
    let left = comparable.min(COMPARED_MAX);
    Scan { bytes, at: 0, in_force: Vec::new(), left }.run()
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// For each open element, how many namespaces are in force inside it.
    in_force: Vec<usize>,
    /// How many comparisons of namespaces there may still be.
    left: usize,
}

impl Scan<'_> {
    fn run(mut self) -> Result<(), XmlError> {
        while let Some(found) = memchr(b'<', self.rest()) {
            self.at += found;
            let rest = self.rest();
            if rest.starts_with(b"<!--") {
                self.skip(4, b"-->");
            } else if rest.starts_with(b"<![CDATA[") {
                self.skip(9, b"]]>");
            } else if rest.starts_with(b"<?") {
                self.skip(2, b"?>");
            } else if rest.starts_with(b"<!") {
                return Err(XmlError::Doctype);
            } else if rest.starts_with(b"</") {
                self.in_force.pop();
                self.skip(2, b">");
            } else {
                self.start_tag()?;
            }
        }
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, opening: usize, closing: &[u8]) {
        self.at += opening;
        let found = memmem::find(self.rest(), closing);
        self.at = found.map_or(self.bytes.len(), |found| self.at + found + closing.len());
    }

    fn start_tag(&mut self) -> Result<(), XmlError> {
        let mut attributes = 0;
        let mut declared = 0;
        let mut name_start = None;
        // Before the name of the tag there is no blank.
        let mut after_blank = false;
        let mut is_empty = false;
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'>' => break,
                b'"' | b'\'' => {
                    let length = memchr(byte, self.bytes.get(self.at + 1..).unwrap_or_default());
                    self.at = length.map_or(self.bytes.len(), |length| self.at + 1 + length);
                    name_start = None;
                    after_blank = true;
                }
                b'=' => {
                    let name = name_start.and_then(|start| self.bytes.get(start..self.at));
                    attributes += 1;
                    declared += usize::from(name.is_some_and(|name| name.starts_with(b"xmlns")));
                    if attributes > ATTRIBUTES_MAX {
                        return Err(XmlError::TooManyAttributes);
                    }
                }
                b' ' | b'\t' | b'\r' | b'\n' => after_blank = true,
                _ => {
                    if after_blank {
                        name_start = Some(self.at);
                    }
                    after_blank = false;
                }
            }
            is_empty = byte == b'/';
            self.at += 1;
        }
        self.at += 1;
        self.open(declared, is_empty)
    }

    fn open(&mut self, declared: usize, is_empty: bool) -> Result<(), XmlError> {
        let outside = self.in_force.last().copied().unwrap_or(0);
        let inside = outside + declared;
        if inside > NAMESPACES_MAX {
            return Err(XmlError::TooManyNamespaces);
        }
        if declared > 0 {
            let left = self.left.checked_sub(inside.saturating_mul(inside));
            self.left = left.ok_or(XmlError::TooManyNamespaces)?;
        }
        if self.in_force.len() == DEPTH_MAX {
            return Err(XmlError::TooDeep);
        }
        if !is_empty {
            self.in_force.push(inside);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), XmlError> {
        check(text, Limits { bytes: 1 << 20, nodes: 10_000 })
    }

    #[test]
    fn what_only_looks_like_markup_is_no_markup() {
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        for text in [
            format!("<!-- <!DOCTYPE x> {deep} --><a/>"),
            format!("<a><![CDATA[<!DOCTYPE x> {deep}]]></a>"),
            format!("<?p {deep}?><a/>"),
            "<a b='>' c=\"'<!\"/>".to_owned(),
            format!("<r>{}</r>", "<a b = '1' />".repeat(500)),
            format!("<r>{}</r>", "<a></a>".repeat(500)),
        ] {
            assert_eq!(checked(&text), Ok(()), "{text}");
        }
        assert_eq!(checked("<!DOCTYPE a><a/>"), Err(XmlError::Doctype));
        assert_eq!(checked("<a><!ENTITY x 'y'></a>"), Err(XmlError::Doctype));
    }

    #[test]
    fn every_limit_is_held() {
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert_eq!(checked(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(checked(&nested(DEPTH_MAX + 1)), Err(XmlError::TooDeep));
        let attributes = |count: usize| {
            let many: Vec<String> = (0..count).map(|index| format!(" a{index} = '='")).collect();
            format!("<a{}/>", many.concat())
        };
        assert_eq!(checked(&attributes(ATTRIBUTES_MAX)), Ok(()));
        assert_eq!(checked(&attributes(ATTRIBUTES_MAX + 1)), Err(XmlError::TooManyAttributes));
        let declaring = |count: usize| {
            let many: Vec<String> =
                (0..count).map(|index| format!(" xmlns:n{index}='u'")).collect();
            format!("<a{}>", many.concat())
        };
        assert_eq!(checked(&declaring(200)), Ok(()));
        assert_eq!(checked(&declaring(150).repeat(2)), Err(XmlError::TooManyNamespaces));
        // What the parser compares is the square of what is in force.
        let limits = Limits { bytes: 1 << 30, nodes: 100_000 };
        let adding_up = |outside, count| declaring(outside) + &"<b xmlns='u'/>".repeat(count);
        for (outside, count, expected) in [
            (200, 90, Ok(())),
            (200, 200, Err(XmlError::TooManyNamespaces)),
            (14, 80_000, Ok(())),
            (60, 80_000, Err(XmlError::TooManyNamespaces)),
        ] {
            assert_eq!(check(&adding_up(outside, count), limits), expected, "{outside} {count}");
        }
        assert!(matches!(checked(&"=".repeat(50_000)), Err(XmlError::TooManyNodes { .. })));
        assert!(matches!(checked(&" ".repeat(2 << 20)), Err(XmlError::TooLarge { .. })));
    }
}
