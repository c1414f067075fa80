"""Coherent sets of torch, torchvision, torchaudio and triton, and the rules for them."""
