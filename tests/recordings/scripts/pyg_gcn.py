"""
framework: pytorch geometric
packages: [torch_geometric, torch]
style: 'the line of the GCN example (torch_geometric.logging.log): "Epoch: 010, Loss: 0.1234, Train: 0.9000, Val: 0.8000, Test: 0.8000"'
shown: epoch (no total, padded with zeros) loss and accuracies
note: 'Epoch 200 with its loss and accuracies (total not displayed); then the median time per epoch.'
"""
import json, os, time
import torch
import torch.nn.functional as F
from torch_geometric.logging import log
from torch_geometric.nn import GCNConv
from torch_geometric.utils import stochastic_blockmodel_graph


def truth(**entry):
    if "TRUTH_LOG" in os.environ:
        with open(os.environ["TRUTH_LOG"], "a") as f:
            f.write(json.dumps({"t": time.time(), **entry}) + "\n")


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(16, 16)
        self.conv2 = GCNConv(16, 3)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        return self.conv2(F.dropout(x, p=0.5, training=self.training), edge_index)


torch.manual_seed(0)
edge_index = stochastic_blockmodel_graph([100, 100, 100], torch.full((3, 3), 0.01) + 0.02 * torch.eye(3))
y = torch.arange(3).repeat_interleave(100)
x = torch.randn(300, 16) + 0.4 * F.one_hot(y, 16)
split = torch.randint(0, 3, (300,))
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
times = []
for epoch in range(1, 201):
    start = time.time()
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edge_index)[split == 0], y[split == 0])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        good = model(x, edge_index).argmax(1) == y
    train_acc, val_acc, test_acc = (good[split == i].float().mean().item() for i in range(3))
    time.sleep(0.05)
    log(Epoch=epoch, Loss=float(loss), Train=train_acc, Val=val_acc, Test=test_acc)
    truth(event="epoch_end", epoch=epoch, loss=float(loss))
    times.append(time.time() - start)
print(f"Median time per epoch: {torch.tensor(times).median():.4f}s")
