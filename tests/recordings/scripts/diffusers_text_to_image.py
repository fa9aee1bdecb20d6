"""
framework: accelerate
packages: [accelerate, torch, tqdm]
style: "script in the manner of diffusers' train_text_to_image.py: accelerate logger, '***** Running training *****' banner, one tqdm 'Steps' over max_train_steps with set_postfix step_loss and lr after the update, gradient accumulation 2, 'Saved state to ...'"
synthetic: false
outcome: ok
shown: "Steps: percent step/total elapsed<eta it/s, lr=..., step_loss=...; banner with Num examples / Num Epochs / Total optimization steps; INFO lines of checkpoints"
note: 'Steps 150/150 (100%), step_loss=1.98; epochs only in the banner (Num Epochs = 5).'
"""
import json, logging, math, os, time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration, set_seed
from tqdm.auto import tqdm

logger = get_logger(__name__, log_level="INFO")


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


def main():
    max_train_steps, batch, accumulation = 150, 4, 2
    accelerator = Accelerator(gradient_accumulation_steps=accumulation, project_config=ProjectConfiguration(project_dir="sd-model", logging_dir="logs"))
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO)
    logger.info(accelerator.state, main_process_only=False)
    set_seed(3)
    unet = torch.nn.Sequential(torch.nn.Conv2d(4, 96, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(96, 96, 3, padding=1), torch.nn.SiLU(),
                               torch.nn.Conv2d(96, 4, 3, padding=1))
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    data = torch.utils.data.TensorDataset(torch.randn(240, 4, 32, 32))
    loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max_train_steps)
    unet, optimizer, loader, scheduler = accelerator.prepare(unet, optimizer, loader, scheduler)
    per_epoch = math.ceil(len(loader) / accumulation)
    epochs = math.ceil(max_train_steps / per_epoch)
    logger.info("***** Running training *****")
    logger.info(f"  Num examples = {len(data)}")
    logger.info(f"  Num Epochs = {epochs}")
    logger.info(f"  Instantaneous batch size per device = {batch}")
    logger.info(f"  Total train batch size (w. parallel, distributed & accumulation) = {batch * accumulation}")
    logger.info(f"  Gradient Accumulation steps = {accumulation}")
    logger.info(f"  Total optimization steps = {max_train_steps}")
    global_step = 0
    progress_bar = tqdm(range(0, max_train_steps), initial=0, desc="Steps", disable=not accelerator.is_local_main_process)
    for epoch in range(epochs):
        unet.train()
        for (latents,) in loader:
            with accelerator.accumulate(unet):
                noise = torch.randn_like(latents)
                t = torch.rand(latents.shape[0], 1, 1, 1)
                loss = F.mse_loss(unet((1 - t) * latents + t * noise), noise - latents)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(unet.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                progress_bar.update(1)
                global_step += 1
                truth("mid", epoch=epoch, step=global_step, steps=max_train_steps, loss=loss.item())
                if global_step % 60 == 0:
                    path = os.path.join("sd-model", f"checkpoint-{global_step}")
                    accelerator.save_state(path)
                    logger.info(f"Saved state to {path}")
            progress_bar.set_postfix(**{"step_loss": loss.detach().item(), "lr": scheduler.get_last_lr()[0]})
            if global_step >= max_train_steps:
                break
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
