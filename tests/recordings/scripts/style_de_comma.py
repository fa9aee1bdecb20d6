"""
framework: plain python (German logs)
packages: []
style: '"Epoche 3/10, Schritt 120/500, Verlust 0,5312, Genauigkeit 78,25 %, verbleibend 12 Min. 5 Sek." with decimal commas'
shown: epoch epochs step steps loss (decimal comma) accuracy(percent) remaining time; validation line per epoch
note: Epoche 5/5, Schritt 500/500, with its Verlust; then the Validierung line and 'Training beendet'.
"""
import json, math, os, time


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def comma(value, digits):
    return f"{value:.{digits}f}".replace(".", ",")


start = time.time()
print("Gerät: CPU, 16.000 Trainingsbilder, 2.000 Validierungsbilder", flush=True)
for epoch in range(1, 6):
    for step in range(1, 501):
        time.sleep(0.005)
        done = (epoch - 1) * 500 + step
        loss = 0.3 + 1.2 * math.exp(-done / 900) + 0.02 * math.sin(done)
        if step % 50 == 0:
            left = int((time.time() - start) / done * (2500 - done))
            print(f"Epoche {epoch}/5, Schritt {step}/500, Verlust {comma(loss, 4)}, Genauigkeit {comma(95 - 40 * math.exp(-done / 900), 2)} %, "
                  f"verbleibend {left // 60} Min. {left % 60} Sek.", flush=True)
            truth(event="mid", epoch=epoch, epochs=5, step=step, steps=500, loss=loss)
    print(f"  Validierung nach Epoche {epoch}: Verlust {comma(loss + 0.08, 4)}, Genauigkeit {comma(94 - 30 * math.exp(-epoch / 2), 2)} %", flush=True)
print("Training beendet nach", comma(time.time() - start, 1), "Sekunden", flush=True)
