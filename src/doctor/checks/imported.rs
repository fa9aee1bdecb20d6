//! What a framework sees once it was really imported; only where asked.

use super::Check;
use crate::doctor::facts::{Answer, Facts};

const NAME: &str = "import";

pub fn checks(facts: &Facts) -> Vec<Check> {
    let one = |(module, answer): (&String, &Answer<_>)| match answer {
        Answer::Said(imported) => seen(module, imported),
        Answer::Hung(s) => Check::bad(
            NAME,
            format!("'import {module}' and listing its GPUs took over {s} s and was killed"),
            "py-spy or 'python -X importtime' shows where; a hung driver, or a slow network file system",
        ),
        Answer::Failed(said) => Check::bad(
            NAME,
            format!("'import {module}' fails: {said}"),
            format!(
                "'python -c \"import {module}\"' shows all of it; reinstalling {module} usually helps"
            ),
        ),
    };
    facts.imported.iter().map(one).collect()
}

fn seen(module: &str, imported: &crate::doctor::facts::Imported) -> Check {
    if !imported.devices.is_empty() {
        return Check::ok(
            NAME,
            format!("{module} sees {}", imported.devices.join(", ")),
        );
    }
    let said = match imported.said.as_str() {
        "" => String::new(),
        said => format!("; it says: {said}"),
    };
    Check::bad(
        NAME,
        format!("{module} was imported and sees no GPU{said}"),
        "what it says is the cause; 'gpuwatch doctor -v' shows what it should have found",
    )
}
