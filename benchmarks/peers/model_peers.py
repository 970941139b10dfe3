#!/usr/bin/env python3
"""A peer of heed with a trained model, in a separate process that models.py starts.

Usage: model_peers.py PEER, where PEER is one of PEERS below. Reads a request from standard input and prints results in the form
of `heed bench model --json`: the same work on the same tokens, each measured once after one warm-up. Needs only the packages
of that peer."""

import copy
import json
import os
import resource
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"


class Transformers:
    """transformers. It dequantises GGUF files to float32 when it loads them."""

    def __init__(self, request, dtype):
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()
        self.torch, self.transformers, self.dtype = torch, transformers, getattr(torch, dtype)
        self.path = request["model"]
        self.writes = "ids" in request
        self.versions = {"transformers": transformers.__version__, "torch": torch.__version__}

    def load(self, threads):
        self.torch.set_num_threads(threads)
        self.model = None
        if self.path.endswith(".gguf"):
            folder, name = os.path.split(self.path)
            where = {"pretrained_model_name_or_path": folder or ".", "gguf_file": name}
        else:
            where = {"pretrained_model_name_or_path": self.path}
        kind = self.transformers.AutoModelForCausalLM if self.writes else self.transformers.AutoModel
        self.model = kind.from_pretrained(**where, dtype=self.dtype).eval()
        if not self.writes:
            self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(self.path)

    def set_threads(self, threads):
        self.torch.set_num_threads(threads)

    def num_bytes(self):
        return sum(weights.nbytes for weights in self.model.parameters())

    def read(self, ids, state=None):
        """Returns the likeliest next token and the cache of the tokens read."""
        with self.torch.inference_mode():
            inputs = self.torch.tensor([ids])
            out = self.model(input_ids=inputs, past_key_values=state, use_cache=True, logits_to_keep=1)
        return int(out.logits[0, -1].argmax()), out.past_key_values

    def copied(self, state):
        return copy.deepcopy(state)

    def embed(self, sentences):
        """Embeds as sentence-transformers does: padded batches of 32 texts of similar length; means, normalised to length 1."""
        vectors = [None] * len(sentences)
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        for first in range(0, len(order), 32):
            some = order[first : first + 32]
            batch = self.tokenizer([sentences[i] for i in some], padding=True, truncation=True, return_tensors="pt")
            with self.torch.inference_mode():
                hidden = self.model(**batch).last_hidden_state
                mask = batch["attention_mask"][:, :, None].to(hidden.dtype)
                means = (hidden * mask).sum(1) / mask.sum(1)
                for i, vector in zip(some, self.torch.nn.functional.normalize(means)):
                    vectors[i] = vector
        return vectors


class LlamaCpp:
    """llama.cpp through llama-cpp-python: products use the stored weights, and activations rounded to 8 bits."""

    def __init__(self, request):
        import llama_cpp
        import numpy as np

        self.llama_cpp, self.np = llama_cpp, np
        self.path = request["model"]
        self.batch = request["prompt"]
        self.context = max(request["prompt"], *(past + request["tokens"] for past in request["past"]), 1)
        self.versions = {"llama-cpp-python": llama_cpp.__version__}
        self.model = None

    def load(self, threads):
        if self.model:
            self.model.close()
        settings = {"n_ctx": self.context, "n_batch": self.batch, "n_ubatch": self.batch, "verbose": False}
        self.model = self.llama_cpp.Llama(self.path, n_threads=threads, n_threads_batch=threads, **settings)

    def set_threads(self, threads):
        self.llama_cpp.llama_set_n_threads(self.model.ctx, threads, threads)

    def num_bytes(self):
        return self.llama_cpp.llama_model_size(self.model.model)

    def read(self, ids, state=0):
        """`state` is the number of tokens read so far: eval() drops all later ones."""
        self.model.n_tokens = state
        self.model.eval(ids)
        logits = self.llama_cpp.llama_get_logits_ith(self.model.ctx, -1)
        token = self.np.ctypeslib.as_array(logits, shape=(self.model.n_vocab(),)).argmax()
        return int(token), self.model.n_tokens

    def copied(self, state):
        return state


PEERS = {
    "transformers float32": lambda request: Transformers(request, "float32"),
    "transformers bfloat16": lambda request: Transformers(request, "bfloat16"),
    "llama.cpp": LlamaCpp,
}


def peak_bytes():
    """The peak memory in bytes, read as in cli/bench/peak_memory.cc, which gives the reason."""
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Runs:
    """The work of cli/bench/model_runs.cc, in the same order."""

    def __init__(self, peer, request):
        self.peer, self.request = peer, request
        self.results, self.written = [], []

    def measure(self, case, call, prepare=lambda: None, warms_up=True):
        """Times call(prepare()), without the time of prepare()."""
        for _ in range(1 + warms_up):
            prepared = prepare()
            start = time.perf_counter()
            result = call(prepared)
            elapsed = time.perf_counter() - start
        self.results.append({"case": case, "median_ms": 1e3 * elapsed})
        return result

    def start(self, case, threads, begin):
        def call(_):
            self.peer.load(threads)
            return begin()

        # Only the first load needs a warm-up; it serves all numbers of threads.
        self.measure({"work": "start", **case, "threads": threads}, call, warms_up=not self.results)

    def write(self):
        request, peer = self.request, self.peer
        prompt = request["ids"][: request["prompt"]]
        case = {"past": 0, "tokens": len(prompt)}
        for threads in request["threads"]:
            self.start(case, threads, lambda: peer.read(prompt))
            self.measure({"work": "read", **case, "threads": threads}, lambda _: peer.read(prompt))
        for past in request["past"]:
            self.write_behind(past)

    def write_behind(self, past):
        request, peer = self.request, self.peer
        first, state = None, None
        for begin in range(0, past, request["prompt"]):
            more = request["ids"][begin : min(begin + request["prompt"], past)]
            first, state = peer.read(more, *([] if state is None else [state]))

        def call(kept):
            token, written = first, []
            for _ in range(request["tokens"]):
                written.append(token)
                token, kept = peer.read([token], kept)
            return written

        for threads in request["threads"]:
            peer.set_threads(threads)
            case = {"work": "write", "past": past, "tokens": request["tokens"], "threads": threads}
            written = self.measure(case, call, lambda: peer.copied(state))
        self.written.append({"past": past, "ids": written})

    def embed(self):
        sentences = self.request["sentences"]
        for threads in self.request["threads"]:
            self.start({"sentences": 1}, threads, lambda: self.peer.embed(sentences[:1]))
            case = {"work": "embed", "sentences": len(sentences), "tokens": self.request["tokens"], "threads": threads}
            self.measure(case, lambda _: self.peer.embed(sentences))


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PEERS:
        sys.exit(f"model_peers.py: expected one of {', '.join(PEERS)}")
    request = json.load(sys.stdin)
    peer = PEERS[sys.argv[1]](request)
    runs = Runs(peer, request)
    if "ids" in request:
        runs.write()
    else:
        runs.embed()
    report = {"versions": peer.versions, "model": {"bytes": peer.num_bytes()}, "peak_bytes": peak_bytes()}
    print(json.dumps(report | {"results": runs.results, "written": runs.written}))


if __name__ == "__main__":
    main()
