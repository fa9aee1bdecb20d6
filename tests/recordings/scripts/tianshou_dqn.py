"""
framework: tianshou
packages: [tianshou, torch, gymnasium]
style: 'DQN with its off-policy trainer: "Epoch #1: 100%|#####| 600/600 [00:04<00:00, 230.0it/s, env_step=600, ...]" and "Epoch #1: test_reward: 9.5 ± 0.5, best_reward: ..."'
shown: 'epoch (Epoch #2, no total) percent step steps rate, env_step and update_step in the postfix; the test reward after each epoch'
note: 'Epoch #4, 600/600, 100%; then the test_reward line of epoch 4. The total of 4 epochs is not displayed.'
"""
import json, os, time
import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


def training_fn(epoch, env_step):
    time.sleep(0.05)
    if env_step % 60 == 0:
        truth(event="mid", epoch=epoch, epochs=4, step=env_step - (epoch - 1) * 600, steps=600)


np.random.seed(0)
torch.manual_seed(0)
env = gym.make("CartPole-v1")
train_envs = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(4)])
test_envs = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(4)])
train_envs.seed(0)
test_envs.seed(1)
net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[32, 32])
policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.1, eps_inference=0.05)
algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.9, target_update_freq=100)
train_collector = Collector[CollectStats](algorithm, train_envs, VectorReplayBuffer(5000, 4), exploration_noise=True)
test_collector = Collector[CollectStats](algorithm, test_envs)
result = algorithm.run_training(OffPolicyTrainerParams(
    training_collector=train_collector, test_collector=test_collector, max_epochs=4, epoch_num_steps=600,
    collection_step_num_env_steps=12, test_step_num_episodes=8, batch_size=32, update_step_num_gradient_steps_per_sample=0.1,
    training_fn=training_fn, test_in_training=False))
print(f"best reward: {result.best_reward:.2f} ± {result.best_reward_std:.2f}")
