"""The tokenizer in a GGUF file, as the ``tokenizers`` library and Hugging Face's files have it."""

from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from minivllm.transformers_utils.gguf.reader import GGUFFile

# Values of tokenizer.ggml.token_type.
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4

# How llama3 splits text: contractions, words, up to three digits, marks, line breaks, spaces.
LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
                  r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def llama_tokenizer(gguf: GGUFFile) -> Tokenizer:
    """Build the tokenizer.

    Raises
    ------
    ValueError
        If it is of a kind that is not known here, or a part of it is missing.
    """
    kind = gguf.get("tokenizer.ggml.model")
    builders = {"gpt2": _byte_level, "llama": _sentencepiece}
    if kind not in builders:
        raise ValueError(f"{gguf.path} has a tokenizer of kind {kind!r}; known are "
                         f"{', '.join(builders)}. Pass tokenizer= a directory with a "
                         "tokenizer.json.")
    try:
        return _with_special_tokens(gguf, builders[kind](gguf), add_bos=kind == "llama")
    except ValueError:
        raise
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise ValueError(f"{gguf.path} has a broken tokenizer: {error}.") from error


def _with_special_tokens(gguf: GGUFFile, tokenizer: Tokenizer, add_bos: bool) -> Tokenizer:
    """Add the tokens that are never split, and the beginning-of-sequence token to every text.

    `add_bos` is what holds if the file does not say.
    """
    tokens = gguf.get("tokenizer.ggml.tokens")
    types = gguf.metadata.get("tokenizer.ggml.token_type", [])
    for token, token_type in zip(tokens, types, strict=False):
        if token_type in (UNKNOWN, CONTROL):
            tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True)])
        elif token_type == USER_DEFINED:
            tokenizer.add_tokens([AddedToken(token, normalized=False)])
    token_id = gguf.metadata.get("tokenizer.ggml.bos_token_id")
    if token_id is not None and gguf.metadata.get("tokenizer.ggml.add_bos_token", add_bos):
        bos = tokens[token_id]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[bos, "$A"], special_tokens=[(bos, token_id)])
    return tokenizer


def llama_tokenizer_config(gguf: GGUFFile) -> dict[str, Any]:
    """Return what ``tokenizer_config.json`` would say: the special tokens and the template."""
    tokens = gguf.get("tokenizer.ggml.tokens")
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast",
                              "clean_up_tokenization_spaces": False}
    keys = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    for name, key in keys.items():
        token_id = gguf.metadata.get(f"tokenizer.ggml.{key}_token_id")
        if token_id is not None and token_id < len(tokens):
            config[name] = tokens[token_id]
    if template := gguf.metadata.get("tokenizer.chat_template"):
        config["chat_template"] = template
    return config


def _byte_level(gguf: GGUFFile) -> Tokenizer:
    """BPE over bytes, as GPT-2's; they differ in how text is split before."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    splits = {
        "default": byte_level,
        "gpt-2": byte_level,
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                           byte_level]),
        "llama-bpe": pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(LLAMA3_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
    }
    split = gguf.metadata.get("tokenizer.ggml.pre", "default")
    if split not in splits:
        raise ValueError(f"{gguf.path}: the tokenizer splits text as {split!r}; known are "
                         f"{', '.join(splits)}. Pass tokenizer= a directory with a "
                         "tokenizer.json.")
    tokens = gguf.get("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in gguf.get("tokenizer.ggml.merges")]
    # llama3 was trained with ignore_merges: a word that is a token needs no merges.
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)},
                                     merges=merges, ignore_merges=split == "llama-bpe"))
    tokenizer.pre_tokenizer = splits[split]
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(gguf: GGUFFile) -> Tokenizer:
    """BPE over characters with bytes as the last resort, as Llama 2's; spaces are U+2581."""
    tokens = gguf.get("tokenizer.ggml.tokens")
    vocab = {token: i for i, token in enumerate(tokens)}
    unknown = tokens[gguf.metadata.get("tokenizer.ggml.unknown_token_id", 0)]
    merges = merges_from_scores(vocab, gguf.get("tokenizer.ggml.scores"))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token=unknown, fuse_unk=True,
                                     byte_fallback=True))
    prefix = gguf.metadata.get("tokenizer.ggml.add_space_prefix", True)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁")] * prefix + [normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        + [decoders.Strip(" ", 1, 0)] * prefix)
    return tokenizer


def merges_from_scores(vocab: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Recover the merges, best first: every way to put a token together from two others.

    The higher the score of the token that comes out, the earlier its merges.

    >>> merges_from_scores({"a": 0, "b": 1, "ab": 2, "aab": 3}, [0, 0, -1, -2])
    [('a', 'b'), ('a', 'ab')]
    """
    merges = []
    for token, token_id in vocab.items():
        pairs = [(token[:i], token[i:]) for i in range(1, len(token))]
        found = [pair for pair in pairs if pair[0] in vocab and pair[1] in vocab]
        found.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        merges += [(scores[token_id], pair) for pair in found]
    merges.sort(key=lambda scored: -scored[0])
    return [pair for _, pair in merges]

