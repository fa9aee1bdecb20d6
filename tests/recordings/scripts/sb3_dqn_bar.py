"""
framework: stable-baselines3
packages: [stable-baselines3, torch, gymnasium, rich]
style: 'DQN.learn(progress_bar=True): a rich bar " 45% ━━━ 1,350/3,000  [ 0:00:05 < 0:00:06 , 260 it/s ]" and the rollout tables of verbose=1 above it'
shown: 'percent step steps elapsed remaining rate (bar, drawn on a terminal only); tables with episodes, fps, total_timesteps, loss'
note: 'pty: the bar at 100%, 3,000/3,000. pipe: the tables, and the finished bar once at the end.'
"""
import json, os, time
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class Truth(BaseCallback):
    def _on_step(self):
        time.sleep(0.002)
        if self.num_timesteps % 100 == 0:
            truth(event="mid", step=self.num_timesteps, steps=3000)
        return True


model = DQN("MlpPolicy", "CartPole-v1", verbose=1, seed=1, learning_starts=200, device="cpu")
model.learn(total_timesteps=3000, log_interval=20, progress_bar=True, callback=Truth())
