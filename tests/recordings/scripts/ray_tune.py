"""
framework: ray tune
packages: [ray]
style: 'Tuner.fit with 4 trials of a function trainable: "Trial status: 2 RUNNING | 2 PENDING", the table of trials (status, iter, total time, loss), "Trial train_fn_... completed after 10 iterations at ..."'
env: {RAY_USAGE_STATS_ENABLED: 0, RAY_AUTH_MODE: disabled}
shown: per trial the iteration and the loss in a table; counts of trials by status
note: 4 TERMINATED trials, each at iteration 10. No single epoch or step holds for the whole.
"""
import json, os, time
import ray
from ray import tune


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def train_fn(config):
    for iteration in range(1, 11):
        time.sleep(1.0)
        loss = 1 / (config["lr"] * 100 + iteration)
        tune.report({"loss": loss, "accuracy": 1 - loss})
        truth(event="epoch_end", step=iteration, steps=10, loss=loss, lr=config["lr"])


if __name__ == "__main__":
    ray.init(num_cpus=2)
    tuner = tune.Tuner(train_fn, param_space={"lr": tune.grid_search([0.001, 0.01, 0.03, 0.1])},
                       tune_config=tune.TuneConfig(metric="loss", mode="min"),
                       run_config=tune.RunConfig(name="search", storage_path=os.path.abspath("results")))
    best = tuner.fit().get_best_result()
    print("best:", best.config, round(best.metrics["loss"], 4))
