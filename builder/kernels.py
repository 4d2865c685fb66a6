"""The rows of the ledger: their names, and what the page calls them."""

# in the order in which a pass runs them
KERNEL_LABELS = {
    "qkv_proj": "QKV projection",
    "attention": "Attention",
    "out_proj": "Output projection",
    "gate_proj": "Gate projection",
    "up_proj": "Up projection",
    "down_proj": "Down projection",
    "elementwise": "Elementwise",
    "lm_head": "LM head",
}
KERNELS = tuple(KERNEL_LABELS)
