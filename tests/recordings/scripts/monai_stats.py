"""
framework: monai
packages: [monai, pytorch-ignite, torch]
style: "MONAI SupervisedTrainer with StatsHandler ('2026-11-30 12:00:00,123 - INFO - Epoch: 1/4, Iter: 3/25 -- train_loss: 0.1234') and a SupervisedEvaluator run at the end of each epoch by ValidationHandler"
synthetic: false
outcome: ok
shown: "Epoch/epochs, Iter/iters, train_loss; evaluator's own lines 'Epoch[1] Metrics -- ...', 'Engine run resuming from iteration 0, epoch 0 until 4 epochs', 'Epoch[1] Complete. Time taken: ...'"
note: 'Epoch 4/4, Iter 25/25, train_loss 0.0135; the evaluator says ''Epoch[4] Metrics -- val_mse: ...'' after it.'
"""
import json, logging, os, sys, time

import torch
from ignite.engine import Events
from ignite.metrics import MeanSquaredError
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import StatsHandler, ValidationHandler, from_engine
from monai.utils import set_determinism

logging.basicConfig(stream=sys.stdout, level=logging.INFO)


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


def loader(n):
    x = torch.randn(n, 1, 16, 16)
    rows = [{"image": a, "label": a.sigmoid()} for a in x]
    return torch.utils.data.DataLoader(rows, batch_size=8)


set_determinism(13)
device = torch.device("cpu")
net = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 1, 3, padding=1))
def stacked(output):
    return tuple(torch.stack([row[key] for row in output]) for key in ("pred", "label"))


evaluator = SupervisedEvaluator(device=device, val_data_loader=loader(64), network=net, key_val_metric={"val_mse": MeanSquaredError(output_transform=stacked)},
                                val_handlers=[StatsHandler(name="evaluator", iteration_log=False, output_transform=lambda output: None)])
trainer = SupervisedTrainer(device=device, max_epochs=4, train_data_loader=loader(200), network=net, optimizer=torch.optim.Adam(net.parameters(), 1e-3),
                            loss_function=torch.nn.MSELoss(),
                            train_handlers=[ValidationHandler(validator=evaluator, interval=1, epoch_level=True),
                                            StatsHandler(name="trainer", tag_name="train_loss", output_transform=from_engine(["loss"], first=True))])


@trainer.on(Events.ITERATION_COMPLETED)
def log(engine):
    time.sleep(0.08)
    truth("mid", epoch=engine.state.epoch, epochs=4, step=(engine.state.iteration - 1) % 25 + 1, steps=25, loss=float(engine.state.output[0]["loss"]))


trainer.run()
