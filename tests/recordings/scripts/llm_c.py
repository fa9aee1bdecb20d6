"""
framework: llm.c (format)
packages: []
style: "llm.c's train_gpt2.cu: parameter table, 'val loss 7.123456' every 50 steps, generated samples between --- lines, and 'step   10/200 | loss 7.100000 (+0.10z)| norm 1.2345 (-0.20z)| lr 3.00e-04 | 12.30 ms | 42.1% bf16 MFU | 123456 tok/s'; the z-scores are nan for the first 128 steps"
synthetic: true
outcome: ok
shown: step/steps loss norm lr ms MFU tok/s; val loss; total average iteration time
note: 'step 200/200, loss 3.620667 (the nan in brackets are z-scores, not the loss); val loss 3.625213 after it.'
"""
import json, math, os, random, time


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


random.seed(9)
steps = 200
rule = "+-----------------------+----------------------------------------------------+"
print(rule)
print("| Parameter             | Value                                              |")
print(rule)
for name, value in [("train data pattern", "dev/data/fineweb10B/fineweb_train_*.bin"), ("val data pattern", "dev/data/fineweb10B/fineweb_val_*.bin"),
                    ("output log dir", "log124M"), ("checkpoint_every", 5000), ("resume", 0), ("micro batch size B", 64), ("sequence length T", 1024),
                    ("total batch size", 524288), ("LR scheduler", "cosine"), ("learning rate (LR)", "6.000000e-04"), ("warmup iterations", 700),
                    ("final LR fraction", "0.000000e+00"), ("weight decay", "1.000000e-01"), ("max_steps", steps), ("val_loss_every", 50),
                    ("val_max_steps", 20), ("sample_every", 100), ("genT", 64)]:
    print(f"| {name:<21} | {value!s:<50} |")
print(rule)
print(f"| {'train_num_batches':<21} | {steps:<50} |")
print(f"| {'val_num_batches':<21} | {20:<50} |")
print(rule)
print("batch_size B=64 * seq_len T=1024 * num_processes=1 and total_batch_size=524288")
print("=> setting grad_accum_steps=8", flush=True)
for step in range(steps + 1):
    last_step = step == steps
    loss = 3.6 + 7.4 * math.exp(-step / 30) + random.uniform(-0.05, 0.05)
    if step % 50 == 0 or last_step:
        time.sleep(0.25)
        print(f"val loss {loss + 0.02:.6f}", flush=True)
        truth("eval", step=step, steps=steps, metrics={"val_loss": round(loss + 0.02, 6)})
    if step and step % 100 == 0 or last_step:
        print("generating:\n---")
        print(" ".join(str(random.randrange(50257)) for _ in range(63)), end=" ", flush=True)
        print("\n---", flush=True)
    if last_step:
        break
    time.sleep(0.06)
    ms = 1180 + random.uniform(-4, 4)
    z = "+nan" if step < 128 else f"{random.uniform(-1.8, 1.2):+.2f}"
    zg = "+nan" if step < 128 else f"{random.uniform(-1.8, 1.2):+.2f}"
    print(f"step {step + 1:4d}/{steps} | loss {loss:7.6f} ({z}z)| norm {1.2 + random.random():6.4f} ({zg}z)| lr {6e-4 * (step + 1) / 700:.2e} | {ms:.2f} ms | "
          f"{43 + random.random():.1f}% bf16 MFU | {524288000 / ms:.0f} tok/s", flush=True)
    truth("mid", step=step + 1, steps=steps, loss=loss)
print("total average iteration time: 1180.412345 ms", flush=True)
