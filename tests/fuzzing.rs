//! The fuzz entries on seeds and on a bounded number of mutations of each, the same in every run.
//! `tests/fuzz` gives the same entries to libFuzzer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "an entry that panics has found a fault")]

#[path = "fuzz/entries.rs"]
mod entries;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread;

const STATE: u64 = 0x2545_F491_4F6C_DD1D;

/// Xorshift: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap()
    }

    /// Bytes of `seed` replaced, left out, repeated or taken from another place of it.
    fn mutated(&mut self, seed: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
        let mut data = seed.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(data.len() + 1);
            let end = (at + self.below(16)).min(data.len());
            match self.below(5) {
                0 => drop(data.splice(at..end, pieces[self.below(pieces.len())].iter().copied())),
                1 => drop(data.drain(at..end)),
                2 => drop(data.splice(at..at, data[at..end].repeat(self.below(40)))),
                3 => {
                    let from = self.below(seed.len() + 1);
                    let until = (from + self.below(60)).min(seed.len());
                    drop(data.splice(at..end, seed[from..until].iter().copied()));
                }
                _ => {
                    if let Some(byte) = data.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        data
    }
}

/// What the main thread has, on which commands import. The readers are bounded in depth and not in
/// bytes of stack; those of a build without optimization are large.
const STACK_BYTES: usize = 8 << 20;

/// Gives an entry every seed, and `rounds` mutations of each.
fn run(entry: fn(&[u8]), seeds: &[Vec<u8>], pieces: &[&[u8]], rounds: usize) {
    assert!(!seeds.is_empty());
    let all = || {
        let mut numbers = Numbers(STATE);
        for seed in seeds {
            entry(seed);
            for _ in 0..rounds {
                let data = numbers.mutated(seed, pieces);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| entry(&data))) {
                    eprintln!("with {}", data.escape_ascii());
                    resume_unwind(panic);
                }
            }
        }
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let outcome = builder.spawn_scoped(scope, all).unwrap().join();
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// The files of a folder of the corpus, and of those in it all as one, the root first.
fn corpus(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_one = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    };
    let mut seeds = Vec::new();
    for path in paths {
        if is_one(&path) {
            seeds.push(fs::read(path).unwrap());
        } else if path.join("main.wsdl").exists() {
            let mut files = vec![fs::read(path.join("main.wsdl")).unwrap()];
            for folder in ["schemas", "service"] {
                let Ok(entries) = fs::read_dir(path.join(folder)) else { continue };
                let mut inner: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
                inner.sort();
                files.extend(inner.iter().map(|path| fs::read(path).unwrap()));
            }
            seeds.push(files.join(&b'\0'));
        }
    }
    seeds
}

#[test]
fn openapi_is_read_or_refused() {
    let pieces: &[&[u8]] = &[
        b"{}",
        b"[]",
        b"null",
        b"$ref: '#'",
        b"\"",
        b": ",
        b"-1",
        b"true",
        b"type: object",
        b"\xff",
        b"oneOf: [",
        b"{$ref: '#/paths'}",
        b"allOf",
        b"*a",
        b"&a ",
        b"\n  ",
        b"~1",
        b"%2F",
        b"{id}",
        b"required",
        b"nullable: true",
        b"\0",
        b"1.xsd",
        b"additionalProperties",
        b"9e999",
    ];
    let mut seeds = corpus("openapi", &["yaml", "json"]);
    // As deep as is read.
    let deep = ["openapi: 3.0.0\nx: ", &"{a: ".repeat(120), "1", &"}".repeat(120), "\npaths: {}\n"];
    seeds.push(deep.concat().into_bytes());
    run(entries::openapi, &seeds, pieces, 12);
}

#[test]
fn wsdl_is_read_or_refused() {
    let pieces: &[&[u8]] = &[
        b"<",
        b"/>",
        b"\"",
        b"xs:",
        b"tns:",
        b"ref=\"",
        b"type=\"",
        b"base=\"",
        b"\0",
        b"1.xsd",
        b"&lt;",
        b"maxOccurs=\"unbounded\"",
        b"xs:choice",
        b"xs:any",
        b"abstract=\"true\"",
        b"2",
        b"\xff",
        b"substitutionGroup=\"",
        b"nillable=\"true\"",
        b"xs:extension",
        b"xs:union",
        b"rpc",
        b" ",
    ];
    run(entries::wsdl, &corpus("wsdl", &[]), pieces, 150);
}

#[test]
fn xml_is_read_or_refused() {
    let mut seeds = corpus("wsdl", &[]);
    seeds.push(
        b"<a xmlns:p='u' p:b='&#9;&lt;'>t<!-- c --><![CDATA[<]]><p:c xmlns=''/>&amp;</a>".into(),
    );
    seeds.push(b"\xff\xfe<\0a\0/\0>\0".into());
    let pieces: &[&[u8]] = &[
        b"<",
        b"</",
        b"/>",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?",
        b"?>",
        b"&",
        b"&#x0;",
        b"xmlns",
        b"xmlns:p=''",
        b":",
        b"<!DOCTYPE a>",
        b"'",
        b"\xc3",
        b"\0",
        b"encoding='utf-16'",
        b"&#xD;",
    ];
    run(entries::xml, &seeds, pieces, 400);
}

#[test]
fn parts_are_read_or_refused() {
    let seeds = [
        "b\n--b\r\nContent-Type: a/b; filename*=utf-8''%C3%A9\r\n\r\none\r\n--b\r\n\r\n\r\n--b--\r\n",
        "--x\npreamble\r\n----x \r\nA: b\r\n\r\n--x\r\n----x--epilogue",
    ];
    let pieces: &[&[u8]] = &[
        b"\r\n",
        b"\r",
        b"\n",
        b"--b",
        b"--",
        b"\r\n--b",
        b"\r\n\r\n",
        b":",
        b"\0",
        b"\xff",
        b"\"",
        b"; ",
    ];
    run(entries::multipart, &seeds.map(Vec::from), pieces, 4_000);
}

#[test]
fn soap_answers_are_read_or_refused() {
    let envelope = |inside: &str| {
        format!(
            "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:t=\"urn:shapes\" \
             xmlns:x=\"http://www.w3.org/2004/08/xop/include\"><e:Header/><e:Body>{inside}</e:Body>\
             </e:Envelope>"
        )
        .into_bytes()
    };
    let seeds = [
        envelope("<t:ChooseResponse><t:tree><t:label>a</t:label><t:child><t:label>b</t:label></t:child></t:tree><t:circle><t:radius>1.5</t:radius></t:circle><t:square/><t:anything><x/></t:anything><t:prose>a<t:b>c</t:b>d</t:prose></t:ChooseResponse>"),
        envelope("<e:Fault><faultcode>e:Server</faultcode><faultstring>no</faultstring><detail><t:a>1</t:a></detail></e:Fault>"),
        envelope("<t:ValuesResponse><t:drawing i:type=\"t:Circle\"><t:radius>INF</t:radius></t:drawing><t:file><x:Include href=\"cid:a@b\"/></t:file><t:drawing i:nil=\"true\"/></t:ValuesResponse>"),
        String::from_utf8(envelope("<e:Fault><e:Code><e:Value>e:Sender</e:Value></e:Code><e:Reason><e:Text xml:lang=\"en\">no</e:Text></e:Reason></e:Fault>"))
            .unwrap()
            .replace("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope")
            .into_bytes(),
    ];
    let pieces: &[&[u8]] = &[
        b"<",
        b"/>",
        b"\"",
        b"t:",
        b"i:type=\"t:Square\"",
        b"i:nil=\"1\"",
        b"&#x",
        b"<t:a>",
        b"</t:a>",
        b"\xff",
        b"xmlns=\"\"",
        b"e:",
        b"1e400",
        b"-0",
        b"NaN",
    ];
    run(entries::soap_answer, &seeds, pieces, 1_500);
}

#[test]
fn arguments_stay_in_their_places() {
    let seeds: Vec<Vec<u8>> =
        entries::seeds_of_styles().iter().map(|seed| seed.to_string().into_bytes()).collect();
    let pieces: &[&[u8]] = &[
        b"\"",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b"null",
        b"\\u0000",
        b"\\r\\n",
        b"..",
        b"/",
        b"\\\\",
        b"%2e",
        b"&",
        b"fixed",
        b"1e6",
        b"[[]]",
        b"{\"a\":{}}",
        b"|",
        b" ",
        b";",
        b"\"p\":",
        b"[0]",
        b"-ringway-",
    ];
    run(entries::styles, &seeds, pieces, 3_000);
}
