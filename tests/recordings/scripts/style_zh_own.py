"""
framework: plain python (Chinese logs)
packages: []
style: '"[2026-11-30 12:00:00] 第 3/5 轮 [120/500] 损失 0.5312 学习率 0.001 预计剩余 0 分 12 秒" and a line per epoch "第 3 轮结束，用时 4.1 秒，平均损失 0.51，验证准确率 83.2%"'
shown: epoch epochs step steps loss lr remaining time; an epoch's summary without totals
note: 第 5/5 轮 [500/500], then the summary of epoch 5 and 训练结束.
"""
import json, math, os, time


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


start = time.time()
print("使用设备：CPU，训练样本 16000，验证样本 2000，批大小 32", flush=True)
for epoch in range(1, 6):
    began = time.time()
    for step in range(1, 501):
        time.sleep(0.005)
        done = (epoch - 1) * 500 + step
        loss = 0.3 + 1.2 * math.exp(-done / 900) + 0.02 * math.sin(done)
        if step % 50 == 0:
            left = int((time.time() - start) / done * (2500 - done))
            print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] 第 {epoch}/5 轮 [{step}/500] 损失 {loss:.4f} 学习率 0.001 预计剩余 {left // 60} 分 {left % 60} 秒", flush=True)
            truth(event="mid", epoch=epoch, epochs=5, step=step, steps=500, loss=loss)
    print(f"第 {epoch} 轮结束，用时 {time.time() - began:.1f} 秒，平均损失 {loss + 0.05:.2f}，验证准确率 {95 - 30 * math.exp(-epoch / 2):.1f}%", flush=True)
print("训练结束，模型已保存到 模型.pt", flush=True)
