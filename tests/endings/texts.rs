//! A few lines from elsewhere.

use serde_json::{Map, Value};

use super::judged::Told;
use super::{differences, report};

fn check(what: &str, texts: &str) {
    let texts: Vec<Map<String, Value>> = serde_json::from_str(texts).unwrap();
    let mut wrong = Vec::new();
    for text in &texts {
        let mut told = Told::new();
        told.train(3).print(text["text"].as_str().unwrap());
        let (verdict, _) = told.end(&text["end"]);
        let differs = differences(text, &verdict);
        if !differs.is_empty() {
            wrong.push(format!("{}: {}", text["name"], differs.join(", ")));
        }
    }
    report(what, texts.len(), &wrong);
}

#[test]
fn each_end_is_judged_as_a_careful_person_would() {
    check("texts", include_str!("texts.json"));
}

/// Written when the first ones were right.
#[test]
fn so_is_each_that_came_later() {
    check("later texts", include_str!("later.json"));
}
