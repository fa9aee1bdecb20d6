"""
framework: ray train
packages: [ray, torch]
style: 'TorchTrainer with 2 CPU workers; each worker prints "epoch 2/5 step 30/40 loss 0.41", which arrives as "(RayTrainWorker pid=1234) epoch ..."; lines of the TrainController between'
env: {RAY_USAGE_STATS_ENABLED: 0, RAY_AUTH_MODE: disabled}
shown: epoch epochs step steps loss per worker (no rank, only the pid); equal lines of the workers are folded by Ray ("[repeated 2x across cluster]")
note: 'epoch 5/5 step 40/40 loss 0.0150, on stdout and again on stderr, folded from all that both workers printed since the last look (up to 5 s behind); it comes after "training finished". Most lines are never shown.'
"""
import json, os, time
import ray
import ray.train
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def train_loop(config):
    torch.manual_seed(0)
    rank = ray.train.get_context().get_world_rank()
    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(1, config["epochs"] + 1):
        total = 0.0
        for step in range(1, 41):
            x = torch.randn(32, 10, generator=generator)
            loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            time.sleep(0.08)
            if step % 10 == 0:
                print(f"epoch {epoch}/{config['epochs']} step {step}/40 loss {total / step:.4f}", flush=True)
                if rank == 0:
                    truth(event="log", epoch=epoch, epochs=config["epochs"], step=step, steps=40, loss=total / step)
        ray.train.report({"epoch": epoch, "loss": total / 40})
        if rank == 0:
            truth(event="epoch_end", epoch=epoch, epochs=config["epochs"], step=40, steps=40, loss=total / 40)


if __name__ == "__main__":
    ray.init(num_cpus=3)
    trainer = TorchTrainer(train_loop, train_loop_config={"epochs": 5}, scaling_config=ScalingConfig(num_workers=2),
                           run_config=RunConfig(name="demo", storage_path=os.path.abspath("results")))
    trainer.fit()
    print("training finished")
