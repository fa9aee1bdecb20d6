//! The vocabulary: which words name counters, losses, phases.
//!
//! Owns the word lists, in the languages that training scripts are written in. Must not know
//! how a line is put together.

/// What a word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Passes over the data.
    Epochs,
    /// Batches, iterations, updates.
    Steps,
    /// Steps too, but of the whole run: preferred less, because most displays restart.
    RunSteps,
}

/// Calls `f` with the word in lower case, without the heap for all that is common.
fn lowered<R>(word: &str, f: impl FnOnce(&str) -> R) -> R {
    let mut room = [0_u8; 64];
    match room.get_mut(..word.len()) {
        Some(space) if word.is_ascii() => {
            space.copy_from_slice(word.as_bytes());
            space.make_ascii_lowercase();
            f(std::str::from_utf8(space).unwrap_or_default())
        }
        _ => f(&word.to_lowercase()),
    }
}

/// What a word counts, if it names a counter, and whether it is a plural.
pub(super) fn counter(word: &str) -> Option<(Counts, bool)> {
    lowered(word, counter_in_lower_case)
}

fn counter_in_lower_case(word: &str) -> Option<(Counts, bool)> {
    if word == "current_steps" {
        return Some((Counts::Steps, false));
    }
    let mut lower = word;
    for prefix in [
        "train/",
        "training/",
        "train_",
        "trainer/",
        "training_",
        "current_",
        "cur_",
        "curr_",
    ] {
        if let Some(rest) = lower.strip_prefix(prefix) {
            lower = rest;
        }
    }
    let found = match lower {
        "epoch" | "ep" | "轮数" | "epoca" | "época" | "epoche" | "époque" | "эпоха" | "epoka"
        | "轮" | "轮次" | "训练轮次" | "エポック" | "에폭" | "에포크" => {
            (Counts::Epochs, false)
        }
        "epochs" | "épocas" | "epocas" | "epochen" | "époques" => (Counts::Epochs, true),
        "step" | "iter" | "iteration" | "it" | "batch" | "minibatch" | "mini-batch"
        | "mini_batch" | "update" | "episode" | "trial" | "round" | "generation" | "步"
        | "步数" | "批次" | "批" | "迭代" | "ステップ" | "paso" | "schritt" | "шаг"
        | "iteración" | "itération" | "étape" | "passo" | "krok" | "lote" | "итерация" | "스텝"
        | "batch_idx" | "batch_id" | "step_in_epoch" | "step_in_slice" => (Counts::Steps, false),
        "steps" | "iters" | "iterations" | "its" | "batches" | "minibatches" | "mini-batches"
        | "updates" | "episodes" | "trials" | "rounds" | "generations" => (Counts::Steps, true),
        "global_step"
        | "global-step"
        | "globalstep"
        | "num_updates"
        | "total_timesteps"
        | "num_timesteps"
        | "timesteps"
        | "num_env_steps_sampled"
        | "ntrain" => (Counts::RunSteps, false),
        _ => return None,
    };
    Some(found)
}

/// Whether a word names a counter, so that a number may be glued to it.
pub(super) fn counts(word: &str) -> bool {
    word.len() >= 4 && counter(word).is_some() || is_rank(word)
}

/// Whether a word names the rank of a process.
pub(super) fn is_rank(word: &str) -> bool {
    word.eq_ignore_ascii_case("rank") || word == "default"
}

/// Names of totals: `"total_steps": 40`.
pub(super) fn total(word: &str) -> Option<Counts> {
    lowered(word, |lower| match lower {
        "epochs" | "num_epochs" | "total_epochs" | "max_epochs" | "n_epochs"
        | "num_train_epochs" => Some(Counts::Epochs),
        "steps" | "total_steps" | "max_steps" | "num_steps" | "n_steps" | "total_iters"
        | "max_iters" | "num_batches" | "total_batches" | "n_batches" | "steps_per_epoch"
        | "total_iterations" => Some(Counts::Steps),
        _ => None,
    })
}

/// A word before a counter's name that makes the number something else than where we are.
pub(super) fn is_elsewhere(word: &str) -> bool {
    lowered(word, |lower| {
        matches!(
            lower,
            "best"
                | "over"
                | "per"
                | "every"
                | "each"
                | "last"
                | "max"
                | "min"
                | "total"
                | "num"
                | "warmup"
                | "from"
                | "resume"
                | "resuming"
                | "resumed"
                | "until"
                | "since"
                | "skipped"
                | "nan"
                | "patience"
                | "final"
                | "n"
                | "number"
                | "accumulation"
        )
    })
}

/// How well a name fits the training loss: smaller is better.
pub(super) fn loss_fit(name: &str) -> Option<u8> {
    lowered(name, |lower| {
        let parts: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|p| !p.is_empty())
            .collect();
        let has = |word: &str| parts.contains(&word);
        if ["损失", "损耗", "損失"]
            .iter()
            .any(|word| lower.contains(word))
        {
            return (!is_eval(lower)).then_some(1);
        }
        if parts.iter().any(|p| is_eval_part(p)) || has("scale") || has("scaler") || has("best") {
            return None;
        }
        if let Some(fit) = plain_loss(lower) {
            return Some(fit);
        }
        // What is minimised under another name.
        if matches!(lower, "xent" | "nll" | "cost") {
            return Some(3);
        }
        let train = has("train") || has("training") || has("tr");
        let plain = parts.iter().all(|p| {
            matches!(
                *p,
                "loss"
                    | "train"
                    | "training"
                    | "tr"
                    | "total"
                    | "avg"
                    | "average"
                    | "mean"
                    | "lm"
                    | "running"
                    | "avr"
                    | "batch"
                    | "main"
                    | "value"
                    | "epoch"
                    | "step"
                    | "rank"
                    | "slice"
            )
        });
        if parts.as_slice() == ["value", "loss"] {
            return None;
        }
        if has("loss") && plain {
            return Some(if train { 1 } else { 2 });
        }
        (lower.ends_with("loss") && !has("policy") && !has("value") && !has("entropy")).then_some(4)
    })
}

/// The loss itself, in the languages that scripts are written in: 0, and 1 with a word more.
fn plain_loss(lower: &str) -> Option<u8> {
    if matches!(
        lower,
        "loss"
            | "train_loss"
            | "train/loss"
            | "pérdida"
            | "verlust"
            | "perte"
            | "perda"
            | "perdita"
            | "потери"
            | "손실"
    ) {
        return Some(u8::from(lower != "loss"));
    }
    None
}

/// A word that names a loss by itself, wherever it stands.
pub(super) fn is_loss_itself(word: &str) -> bool {
    !matches!(word, "cost" | "Cost" | "xent" | "nll") && loss_fit(word).is_some()
}

fn is_eval_part(part: &str) -> bool {
    matches!(
        part,
        "val" | "eval" | "evaluation" | "evaluación" | "évaluation" | "test" | "dev" | "cv"
    ) || part.starts_with("valid")
        || part.starts_with("валидац")
}

/// A word that says "this is not training but a look at the result".
pub(super) fn is_eval(word: &str) -> bool {
    lowered(word, |lower| {
        if lower.contains("验证")
            || lower.contains("评估")
            || lower.contains("测试")
            || lower.contains("検証")
            || lower.contains("검증")
        {
            return true;
        }
        lower.split(|c: char| !c.is_alphanumeric()).any(|part| {
            is_eval_part(part)
                || matches!(
                    part,
                    "evaluate"
                        | "evaluating"
                        | "testing"
                        | "sanity"
                        | "predict"
                        | "predicting"
                        | "prediction"
                        | "inference"
                        | "infer"
                        | "scoring"
                )
        })
    })
}

/// A word that says "training".
pub(super) fn is_train(word: &str) -> bool {
    lowered(word, |lower| {
        lower.contains("训练")
            || lower
                .split(|c: char| !c.is_alphanumeric())
                .any(|p| matches!(p, "train" | "training" | "fit" | "fitting"))
    })
}

/// A word of a bar that prepares or stores something.
pub(super) fn is_chore(word: &str) -> bool {
    lowered(word, |lower| {
        let file = lower.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty()
                && (2..=11).contains(&end.len())
                && end.chars().all(|c| c.is_ascii_alphanumeric())
                && !end.chars().all(|c| c.is_ascii_digit())
        });
        file || lower.split(|c: char| !c.is_alphanumeric()).any(|part| {
            [
                "download",
                "load",
                "fetch",
                "upload",
                "map",
                "token",
                "writ",
                "sav",
                "extract",
                "unzip",
                "process",
                "preprocess",
                "cach",
                "build",
                "prepar",
                "shard",
                "file",
                "filter",
                "flatten",
                "group",
                "generat",
                "convert",
                "index",
                "scan",
                "read",
                "quantiz",
                "compil",
                "captur",
                "collect",
                "comput",
                "encod",
                "pack",
                "copy",
                "sampl",
                "exampl",
                "resolv",
                "render",
                "request",
                "loglikelihood",
                "import",
                "install",
                "push",
                "merg",
            ]
            .iter()
            .any(|stem| part.starts_with(stem))
        })
    })
}

/// A unit of bytes.
pub(super) fn is_bytes(unit: &str) -> bool {
    matches!(
        unit,
        "B" | "kB" | "KB" | "MB" | "GB" | "KiB" | "MiB" | "GiB"
    )
}

/// The rate of a bar that counts what is read or written, no steps: `8680frames/s`.
pub(super) fn is_rate_of_a_chore(unit: &str) -> bool {
    let Some(what) = unit.strip_suffix("/s") else {
        return false;
    };
    let pieces = matches!(
        what,
        "frames" | "files" | "file" | "pages" | "rows" | "records" | "lines" | "docs" | "objects"
    );
    pieces || is_bytes(what)
}

/// A name of a measure that a log line shows without `=` or `:`.
pub(super) fn is_measure(word: &str) -> bool {
    lowered(word, |lower| {
        lower.split(|c: char| !c.is_alphanumeric()).any(|part| {
            part.ends_with("loss")
                || matches!(
                    part,
                    "acc"
                        | "accuracy"
                        | "auc"
                        | "error"
                        | "err"
                        | "rmse"
                        | "mae"
                        | "mse"
                        | "f1"
                        | "map"
                        | "ppl"
                        | "perplexity"
                        | "lr"
                        | "precision"
                        | "recall"
                        | "iou"
                        | "bleu"
                        | "learn"
                        | "reward"
                        | "mfu"
                        | "logloss"
                        | "ndcg"
                        | "r2"
                        | "psnr"
                        | "ssim"
                        | "fid"
                        | "wer"
                        | "cer"
                        | "dice"
                        | "top1"
                        | "top5"
                        | "acc1"
                        | "acc5"
                        | "ce"
                        | "nll"
                        | "kl"
                        | "l1"
                        | "l2"
                        | "mape"
                        | "xent"
                        | "elbo"
                        | "inertia"
                        | "потери"
                        | "verlust"
                        | "genauigkeit"
                        | "perte"
                        | "pérdida"
                        | "perda"
                        | "perdita"
                )
        }) || ["损失", "损耗", "准确率", "精度", "損失", "손실"]
            .iter()
            .any(|word| lower.contains(word))
    })
}

/// A word of remaining time.
pub(super) fn is_remaining(word: &str) -> bool {
    lowered(word, |lower| {
        matches!(
            lower,
            "eta"
                | "remaining"
                | "eta_seconds"
                | "eta_s"
                | "remaining_time"
                | "time_remaining"
                | "time_left"
        ) || lower.contains("剩余")
    })
}

/// NaN and the infinities, as printed.
pub(super) fn not_finite(word: &str) -> Option<f64> {
    match word {
        "nan" | "NaN" | "NAN" => Some(f64::NAN),
        "inf" | "Inf" | "INF" | "Infinity" | "infinity" => Some(f64::INFINITY),
        _ => None,
    }
}

/// Chinese characters: words without spaces between them.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}')
}

pub(super) fn is_ideograph_at_start(text: &str) -> bool {
    text.chars().next().is_some_and(is_ideograph)
}

/// A word that tells of an earlier run, or of a choice among epochs.
pub(super) fn is_recall(word: &str) -> bool {
    lowered(word, |lower| {
        lower == "best"
            || ["load", "resum", "restor", "reload", "revert"]
                .iter()
                .any(|stem| lower.starts_with(stem))
    })
}

/// Levels of log lines.
pub(super) fn is_level(word: &str) -> bool {
    matches!(
        word,
        "INFO"
            | "WARNING"
            | "WARN"
            | "DEBUG"
            | "ERROR"
            | "CRITICAL"
            | "TRACE"
            | "info"
            | "warning"
            | "debug"
            | "Info"
            | "I"
            | "W"
            | "E"
            | "D"
            | "root"
            | "stdout"
            | "stderr"
    )
}

/// The factor of a glued unit (`k`, `M`, `GB`, `ksamples`), and whether it counts bytes.
pub(super) fn scale(unit: &str) -> (f64, bool) {
    let bytes = unit.ends_with('B') || unit.ends_with("iB");
    let factor = match unit.chars().next() {
        Some('k' | 'K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        Some('T') => 1e12,
        _ => 1.0,
    };
    let known = matches!(unit.len(), 1..=3) && (unit.len() == 1 || bytes);
    (if known { factor } else { 1.0 }, bytes)
}
