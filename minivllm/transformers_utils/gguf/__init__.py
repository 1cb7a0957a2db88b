"""GGUF files, the format of llama.cpp: one file with weights, configuration and tokenizer.

Left out: architectures other than Llama; sharded files; writing.
"""
