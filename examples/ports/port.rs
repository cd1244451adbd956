// Mean and last-token pooling for `attnpool check --command ./port` (docs/guides/porting.md).
// Build it with `rustc --edition 2021 -O -o port examples/ports/port.rs`.
// `--mistake` multiplies by the mask in place of selecting: 0 times NaN is NaN.
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

enum Json {
    Object(HashMap<String, Json>),
    List(Vec<Json>),
    Text(String),
    Number(f64),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> u8 {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn accept(&mut self, wanted: u8) -> bool {
        let found = self.peek() == wanted;
        self.at += found as usize;
        found
    }

    fn text(&mut self, ends: &[u8]) -> String {
        let start = self.at;
        while self.at < self.bytes.len() && !ends.contains(&self.bytes[self.at]) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.bytes[start..self.at]).trim().to_string()
    }

    fn string(&mut self) -> String {
        self.accept(b'"'); // names have no escapes
        let text = self.text(b"\"");
        self.at += 1;
        text
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            b'{' => {
                self.at += 1;
                let mut object = HashMap::new();
                while !self.accept(b'}') {
                    let key = self.string();
                    self.accept(b':');
                    object.insert(key, self.value());
                    self.accept(b',');
                }
                Json::Object(object)
            }
            b'[' => {
                self.at += 1;
                let mut list = Vec::new();
                while !self.accept(b']') {
                    list.push(self.value());
                    self.accept(b',');
                }
                Json::List(list)
            }
            b'"' => Json::Text(self.string()),
            _ => match self.text(b",]}").parse() {
                Ok(number) => Json::Number(number),
                Err(_) => panic!("no number before byte {}", self.at),
            },
        }
    }
}

impl Json {
    fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(object) => object.get(key),
            _ => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            _ => "",
        }
    }

    fn number(&self) -> f64 {
        match self {
            Json::Number(number) => *number,
            other => match other.text() {
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                _ => f64::NAN,
            },
        }
    }

    fn numbers(&self, key: &str) -> Vec<f64> {
        match self.get(key) {
            Some(Json::List(list)) => list.iter().map(Json::number).collect(),
            _ => panic!("no list `{key}`"),
        }
    }
}

/// Pools x [rows, length, width] under a mask [rows, length].
fn pool(x: &[f64], mask: Option<&[f64]>, sizes: [usize; 3], last: bool, mistake: bool) -> Vec<f32> {
    let [rows, length, width] = sizes;
    let mut result = vec![0f32; rows * width];
    for row in 0..rows {
        let real: Vec<bool> = (0..length).map(|l| mask.is_none_or(|mask| mask[row * length + l] != 0.0)).collect();
        let count = real.iter().filter(|real| **real).count();
        for c in 0..width {
            let at = |l: usize| x[(row * length + l) * width + c];
            let value = if count == 0 {
                0.0
            } else if last {
                at((0..length).rev().find(|l| real[*l]).unwrap())
            } else if mistake {
                (0..length).map(|l| at(l) * real[l] as u8 as f64).sum::<f64>() / count as f64
            } else {
                (0..length).filter(|l| real[*l]).map(at).sum::<f64>() / count as f64
            };
            result[row * width + c] = value as f32;
        }
    }
    result
}

fn written(value: f32) -> String {
    match value {
        value if value.is_nan() => "\"NaN\"".to_string(),
        value if value.is_infinite() => format!("\"{}Infinity\"", if value < 0.0 { "-" } else { "" }),
        value => format!("{value:e}"),
    }
}

fn joined<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    items.iter().map(write).collect::<Vec<_>>().join(", ")
}

fn answer(call: &Json, mistake: bool) -> String {
    let arguments = call.get("arguments").expect("no arguments");
    let x = arguments.get("x").expect("no x");
    let shape: Vec<usize> = x.numbers("shape").iter().map(|size| *size as usize).collect();
    let lead = &shape[..shape.len() - 2];
    let sizes = [lead.iter().product(), shape[shape.len() - 2], shape[shape.len() - 1]];
    let mask = arguments.get("mask").map(|mask| mask.numbers("data"));
    let last = call.get("function").map(Json::text) == Some("last_pooling");
    let result = pool(&x.numbers("data"), mask.as_deref(), sizes, last, mistake);
    let id = call.get("id").map_or(f64::NAN, Json::number);
    let shape = joined(&[lead, &shape[shape.len() - 1..]].concat(), usize::to_string);
    let data = joined(&result, |value| written(*value));
    format!(r#"{{"id": {id}, "results": [{{"shape": [{shape}], "dtype": "float32", "data": [{data}]}}]}}"#)
}

fn main() {
    let mistake = std::env::args().any(|word| word == "--mistake");
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        let line = line.expect("a line of UTF-8");
        let call = Reader { bytes: line.as_bytes(), at: 0 }.value();
        let said = match call.get("attnpool") {
            Some(_) => concat!(
                r#"{"name": "port.rs", "version": "1", "functions": ["mean_pooling", "last_pooling"], "#,
                r#""dtypes": ["float32"], "encodings": ["data"], "mask": "boolean"}"#
            )
            .to_string(),
            None => answer(&call, mistake),
        };
        writeln!(out, "{said}").and_then(|()| out.flush()).expect("a reader of the output");
    }
}
