//! What a call costs, measured on demand: `cargo test -- --ignored the_price --nocapture`.

use std::time::{Duration, Instant};

use super::api::{Api, json_answer};
use super::support::{ENVIRONMENT, caller, on_a_core, posting, tool};
use crate::http::{Limits, Method, ResponseProgress, ResponseReader};
use crate::rt::{self, ConnectTarget, Deadline, Resolver, WorkerPool};

const ROUNDS: u32 = 20_000;
const BODY: &[u8] = br#"{"customer":"c-1042","lines":[{"sku":"A-7","quantity":2,"price":1.50}]}"#;

/// CPU nanoseconds of this thread, in user and kernel mode.
fn cpu_ns() -> u128 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Prints what one round of many costs.
struct Clock {
    cpu_ns: u128,
    started: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { cpu_ns: cpu_ns(), started: Instant::now() }
    }

    fn stop(self, what: &str) {
        let each = |total: u128| total / u128::from(ROUNDS);
        let (cpu, taken) = (cpu_ns() - self.cpu_ns, self.started.elapsed().as_nanos());
        println!("{what}\t{} ns CPU\t{} ns", each(cpu), each(taken));
    }
}

#[test]
#[ignore = "a measurement"]
fn the_price_of_a_call_over_a_bare_exchange() {
    let answer = json_answer("200 OK", std::str::from_utf8(BODY).unwrap());
    let api = Api::answering(answer);
    let tool = tool(&api, "headers = { Authorization = \"Bearer s3cr3t-value\" }");
    let address = api.address;
    on_a_core(async {
        let workers = WorkerPool::start(1, 8).unwrap();
        let resolver = Resolver::new(workers);
        let target = ConnectTarget { host: "127.0.0.1", port: address.port(), tls: None };
        let mut connection =
            rt::connect(&resolver, target, &|_| true, Duration::from_secs(1)).await.unwrap();
        let deadline = Deadline::new();
        let mut answers = ResponseReader::new(Limits::default());
        let head = format!(
            "POST /v1/orders HTTP/1.1\r\nhost: x\r\naccept: application/json\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            BODY.len()
        );
        let request = [head.as_bytes(), BODY].concat();
        let mut out = Vec::new();
        let caller = caller();
        let asked = posting(BODY);
        for _ in 0..3 {
            let clock = Clock::start();
            for _ in 0..ROUNDS {
                out.extend_from_slice(&request);
                answers.expect(Method::Post);
                let within = Duration::from_secs(1);
                let written = connection.writer.write_all(out, &deadline, within).await;
                written.0.unwrap();
                out = written.1;
                while answers.poll().unwrap() != ResponseProgress::Ready {
                    connection.reader.read(answers.buffer(), &deadline).await.unwrap();
                }
                answers.consume();
            }
            clock.stop("bare exchange");
            let clock = Clock::start();
            for _ in 0..ROUNDS {
                caller.run(&tool, &asked, &ENVIRONMENT).await.result.unwrap();
            }
            clock.stop("call");
        }
    });
}
