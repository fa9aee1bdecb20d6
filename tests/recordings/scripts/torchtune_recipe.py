"""
framework: torchtune (format)
packages: [tqdm]
style: "torchtune's single-device recipe: log lines of the setup, then one tqdm bar per epoch whose description is '{epoch}|{global step}|Loss: {loss}' with the loss unrounded"
synthetic: true
outcome: ok
shown: "epoch (1-based) | global step | Loss, then the bar's own percent step/steps of the epoch, elapsed<eta, s/it"
note: 'epoch 3, global step 120, Loss 0.5999, the epoch''s bar 40/40 (100%). The total number of epochs is only in the configuration at the top.'
"""
import json, logging, math, os, random, sys, time

from tqdm import tqdm

logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s:torchtune.utils._logging:%(message)s")
log = logging.getLogger("torchtune")


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


random.seed(11)
log.info("Running LoRAFinetuneRecipeSingleDevice with resolved config:\n\nbatch_size: 2\ndevice: cpu\ndtype: fp32\nepochs: 3\ngradient_accumulation_steps: 8\n")
log.info("Setting manual seed to local seed 11. Local seed is seed + rank = 11 + 0")
log.info("Model is initialized with precision torch.float32.")
log.info("Tokenizer is initialized from file.")
log.info("Optimizer and loss are initialized.")
log.info("Loss is initialized.")
log.info("Dataset and Sampler are initialized.")
log.info("Learning rate scheduler is initialized.")
global_step, epochs, steps = 0, 3, 40
for epoch in range(epochs):
    pbar = tqdm(total=steps)
    for step in range(steps):
        time.sleep(0.09)
        global_step += 1
        loss = 0.62 + 1.5 * math.exp(-global_step / 30) + random.uniform(-0.06, 0.06)
        pbar.update(1)
        pbar.set_description(f"{epoch + 1}|{global_step}|Loss: {loss}")
        truth("mid", epoch=epoch + 1, epochs=epochs, step=step + 1, steps=steps, loss=loss)
    pbar.close()
    log.info("Saving checkpoint. This may take some time. Retrieving full model state dict...")
    log.info(f"Model checkpoint of size 0.01 GiB saved to /tmp/torchtune/lora_single_device/epoch_{epoch}/ft-model-00001-of-00001.safetensors")
    truth("epoch_end", epoch=epoch + 1, epochs=epochs)
