//! Where two JSON values differ.

use serde_json::Value;

/// Deeper values are compared whole.
const DEPTH_MAX: usize = 32;

/// What is told of a place where two values differ: the way to it, names with a dot or an index in
/// front but for the first, and what stands there in each.
type Told<'a> = dyn FnMut(&[String], Option<&Value>, Option<&Value>) + 'a;

/// Tells each place where two values differ, in order. A step of the way is a name as `named` gives
/// it.
pub fn differing(before: &Value, after: &Value, named: fn(&str) -> String, told: &mut Told<'_>) {
    Walk { path: Vec::new(), named, told }.values(Some(before), Some(after));
}

struct Walk<'a, 't> {
    path: Vec<String>,
    named: fn(&str) -> String,
    told: &'a mut Told<'t>,
}

impl Walk<'_, '_> {
    fn values(&mut self, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (one, other) if one == other => {}
            (Some(Value::Object(one)), Some(Value::Object(other)))
                if self.path.len() < DEPTH_MAX =>
            {
                let added = other.keys().filter(|key| !one.contains_key(*key));
                let mut keys: Vec<&String> = one.keys().chain(added).collect();
                keys.sort_unstable();
                for key in keys {
                    let between = if self.path.is_empty() { "" } else { "." };
                    let step = format!("{between}{}", (self.named)(key));
                    self.below(step, one.get(key), other.get(key));
                }
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) if self.path.len() < DEPTH_MAX => {
                for place in 0..one.len().max(other.len()) {
                    self.below(format!("[{place}]"), one.get(place), other.get(place));
                }
            }
            (before, after) => (self.told)(&self.path, before, after),
        }
    }

    fn below(&mut self, step: String, before: Option<&Value>, after: Option<&Value>) {
        self.path.push(step);
        self.values(before, after);
        self.path.pop();
    }
}
