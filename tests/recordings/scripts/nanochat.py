"""
framework: nanochat (format)
packages: []
style: "nanochat's base_train.py: 'step 00012/00120 (10.00%) | loss: 3.123456 | lrm: 1.00 | dt: 85.12ms | tok/sec: 123,456 | bf16_mfu: 45.12 | epoch: 1 | total time: 0.02m | eta: 0.1m' each step (0-based), 'Step 00040 | Validation bpb: 1.234567' in between"
synthetic: true
outcome: ok
shown: step/steps percent smoothed loss lrm dt tok/sec mfu epoch total time eta; Validation bpb; closing statistics
note: 'last training line step 00119/00120 (99.17%), loss 3.222081, epoch 1; then ''Step 00120 | Validation bpb: 0.968105''.'
"""
import json, math, os, random, time


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


random.seed(10)
steps, smooth, total = 120, 0.0, 0.0
print("Vocab size: 65,536\nTotal batch size 524,288 => gradient accumulation steps: 1")
print(f"Using user-provided number of iterations: {steps}", flush=True)
for step in range(steps + 1):
    if step % 40 == 0 or step == steps:
        time.sleep(0.3)
        bpb = 0.95 + 2.2 * math.exp(-step / 25)
        print(f"Step {step:05d} | Validation bpb: {bpb:.6f}", flush=True)
        truth("eval", step=step, steps=steps, metrics={"val_bpb": round(bpb, 6)})
    if step == steps:
        break
    start = time.time()
    time.sleep(0.08)
    dt = time.time() - start
    loss = 3.0 + 7.9 * math.exp(-step / 30) + random.uniform(-0.05, 0.05)
    smooth = 0.9 * smooth + 0.1 * loss
    shown = smooth / (1 - 0.9 ** (step + 1))
    total += dt if step > 10 else 0
    eta = f" | eta: {(steps - step) * total / (step - 10) / 60:.1f}m" if step > 10 else ""
    lrm = 1.0 if step < 96 else (steps - step) / 24
    print(f"step {step:05d}/{steps:05d} ({100 * step / steps:.2f}%) | loss: {shown:.6f} | lrm: {lrm:.2f} | dt: {dt * 1000:.2f}ms | tok/sec: {int(52428.8 / dt):,} | "
          f"bf16_mfu: {44 + random.random():.2f} | epoch: 1 | total time: {total / 60:.2f}m{eta}", flush=True)
    truth("mid", epoch=1, step=step, steps=steps, loss=shown)
print("Peak memory usage: 73214.55MiB")
print(f"Total training time: {total / 60:.2f}m")
print("Minimum validation bpb: 0.968105", flush=True)
