"""
framework: hydra
packages: [hydra-core, torch]
style: "a training script under @hydra.main: every line has hydra's default prefix '[2026-11-30 12:00:00,123][__main__][INFO] - ', config dumped first, one line per epoch 'epoch 3/10 | train loss 0.123 | val loss 0.456 | val acc 0.78', plus a 'step 20/60' line inside the epoch"
synthetic: false
outcome: ok
shown: epoch/epochs, step/steps, train loss, val loss, val acc, lr
note: 'epoch 10/10, step 60/60, the epoch''s train loss 0.1029 (last step''s loss 0.1278), val loss 0.0844.'
"""
import json, logging, os, time

import hydra
import torch
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

log = logging.getLogger(__name__)
ConfigStore.instance().store("train", {"model": {"hidden": 256, "layers": 3}, "optim": {"name": "adamw", "lr": 0.001}, "trainer": {"epochs": 10, "steps": 60}})


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


@hydra.main(version_base="1.3", config_name="train")
def main(cfg):
    log.info("Config:\n" + OmegaConf.to_yaml(cfg))
    torch.manual_seed(4)
    hidden = cfg.model.hidden
    model = torch.nn.Sequential(torch.nn.Linear(32, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 4))
    log.info(f"Number of parameters: {sum(p.numel() for p in model.parameters()):,}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.optim.lr)
    teacher = torch.randn(32, 4)
    x_val = torch.randn(512, 32)
    y_val = (x_val @ teacher).argmax(1)
    epochs, steps = cfg.trainer.epochs, cfg.trainer.steps
    for epoch in range(1, epochs + 1):
        total = 0.0
        for step in range(1, steps + 1):
            x = torch.randn(64, 32)
            loss = torch.nn.functional.cross_entropy(model(x), (x @ teacher).argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            time.sleep(0.015)
            if step % 20 == 0:
                log.info(f"epoch {epoch}/{epochs} step {step}/{steps} loss {loss.item():.4f} lr {cfg.optim.lr:.2e}")
                truth("mid", epoch=epoch, epochs=epochs, step=step, steps=steps, loss=loss.item())
        with torch.no_grad():
            out = model(x_val)
            val, acc = torch.nn.functional.cross_entropy(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
        log.info(f"epoch {epoch}/{epochs} | train loss {total / steps:.4f} | val loss {val:.4f} | val acc {acc:.3f}")
        truth("epoch_end", epoch=epoch, epochs=epochs, loss=total / steps, metrics={"val_loss": val})
    log.info(f"Training finished. Outputs in {hydra.core.hydra_config.HydraConfig.get().runtime.output_dir}")


if __name__ == "__main__":
    main()
