"""
framework: openai-whisper
packages: [openai-whisper, torch, tqdm]
style: "whisper.transcribe(verbose=False) with a tiny random model: one tqdm bar over audio frames ('frames/s'); no training at all"
synthetic: false
outcome: ok
shown: frames bar percent frames/total eta frames/s; nothing of training
note: 'No training: a bar over audio frames, 150000/150000.'
"""
import json, os, time

import numpy as np
import torch
import whisper
from whisper.model import ModelDimensions, Whisper


def truth(event, **values):
    """Log what really happened, for comparing with what is displayed."""
    with open(os.environ.get("TRUTH_LOG", os.devnull), "a") as log:
        log.write(json.dumps({"t": time.time(), "event": event, **values}) + "\n")


torch.manual_seed(7)
model = Whisper(ModelDimensions(n_mels=80, n_audio_ctx=1500, n_audio_state=64, n_audio_head=2, n_audio_layer=1, n_vocab=51865,
                                n_text_ctx=448, n_text_state=64, n_text_head=2, n_text_layer=1))
for p in model.parameters():
    torch.nn.init.normal_(p, std=0.02)
audio = (np.random.default_rng(7).standard_normal(16000 * 60 * 25) * 0.05).astype(np.float32)
print("Transcribing interview_03.wav", flush=True)
truth("start")
result = whisper.transcribe(model, audio, verbose=False, language="en", temperature=0.0, fp16=False, no_speech_threshold=None,
                            condition_on_previous_text=False, sample_len=60)
truth("end", metrics={"segments": len(result["segments"])})
print(f"done: {len(result['segments'])} segments", flush=True)
