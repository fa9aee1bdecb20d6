"""
framework: modded-nanogpt (format)
packages: []
style: "modded-nanogpt's train_gpt.py lines: 'step:100/1375 train_time:12345ms step_avg:123.45ms' each step and 'step:125/1375 val_loss:4.1234 train_time:...ms step_avg:...ms' every 25; 'peak memory allocated: ... MiB reserved: ... MiB' at the end"
synthetic: true
outcome: ok
shown: step/steps, train_time, step_avg, val_loss; no training loss
note: 'step 150/150, val_loss 3.3139; no training loss is shown.'
"""
import json, math, os, time


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


steps, total, last = 150, 0.0, time.perf_counter()
print("=" * 100, flush=True)
for step in range(steps + 1):
    if step % 25 == 0 or step == steps:
        time.sleep(0.15)  # validation, which the training clock leaves out
        val = 3.28 + 7.5 * math.exp(-step / 28) + 0.002 * math.sin(step)
        print(f"step:{step}/{steps} val_loss:{val:.4f} train_time:{total:.0f}ms step_avg:{total / max(step, 1):.2f}ms", flush=True)
        truth("eval", step=step, steps=steps, metrics={"val_loss": round(val, 4)})
        last = time.perf_counter()
    if step == steps:
        break
    time.sleep(0.07)
    now = time.perf_counter()
    total, last = total + 1000 * (now - last), now
    print(f"step:{step + 1}/{steps} train_time:{total:.0f}ms step_avg:{total / (step + 1):.2f}ms", flush=True)
    truth("mid", step=step + 1, steps=steps)
print("peak memory allocated: 39462 MiB reserved: 40946 MiB", flush=True)
