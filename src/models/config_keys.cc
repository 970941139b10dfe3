#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kWithoutEffect[] = {
    // The origin of the files, and the program that wrote them.
    "_name_or_path", "name_or_path", "_commit_hash", "transformers_version",
    "transformers.js_config", "unsloth_version", "unsloth_fixed", "is_llama_config",
    "sentence_transformers", "xla_device",
    // The number type: the tensors show how numbers are stored, and heed computes in float32.
    "dtype", "torch_dtype", "use_bfloat16", "reorder_and_upcast_attn",
    // PyTorch's implementation of the same function, and the return values of its calls.
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
    "_experts_implementation_internal", "_flash_attn_2_enabled", "attn_implementation",
    "chunk_size_feed_forward", "gradient_checkpointing", "output_attentions",
    "output_hidden_states", "output_past", "pretraining_tp", "return_dict", "tf_legacy_loss",
    "torchscript", "use_cache", "use_return_dict",
    // Training.
    "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "classifier_dropout",
    "embd_pdrop", "embedding_dropout", "hidden_dropout", "hidden_dropout_prob", "initializer_range",
    "neftune_noise_alpha", "resid_pdrop", "residual_dropout",
    // The heads of other tasks, which follow the hidden states.
    "finetuning_task", "id2label", "label2id", "num_labels", "problem_type", "task_specific_params",
    // The tokenizer's own files have these settings.
    "cls_token_id", "mask_token_id", "model_max_length", "prefix", "sep_token_id",
    "tokenizer_class", "tokenizer_model_max_length", "unk_token_id"};

constexpr std::string_view kOfGeneration[] = {"_from_model_config",
                                              "assistant_confidence_threshold",
                                              "assistant_early_exit",
                                              "assistant_ensemble_weight",
                                              "assistant_lookbehind",
                                              "bad_words_ids",
                                              "begin_suppress_tokens",
                                              "bos_token_id",
                                              "cache_config",
                                              "cache_implementation",
                                              "compile_config",
                                              "constraints",
                                              "continuous_batching_config",
                                              "decoder_start_token_id",
                                              "disable_compile",
                                              "diversity_penalty",
                                              "do_sample",
                                              "dola_layers",
                                              "early_stopping",
                                              "encoder_no_repeat_ngram_size",
                                              "encoder_repetition_penalty",
                                              "epsilon_cutoff",
                                              "eta_cutoff",
                                              "exponential_decay_length_penalty",
                                              "force_words_ids",
                                              "forced_bos_token_id",
                                              "forced_eos_token_id",
                                              "guidance_scale",
                                              "is_assistant",
                                              "length_penalty",
                                              "low_memory",
                                              "max_cache_len",
                                              "max_length",
                                              "max_matching_ngram_size",
                                              "max_new_tokens",
                                              "max_time",
                                              "max_window_size",
                                              "min_length",
                                              "min_new_tokens",
                                              "min_p",
                                              "no_repeat_ngram_size",
                                              "num_assistant_tokens",
                                              "num_assistant_tokens_schedule",
                                              "num_beam_groups",
                                              "num_beams",
                                              "num_return_sequences",
                                              "output_attentions",
                                              "output_hidden_states",
                                              "output_logits",
                                              "output_scores",
                                              "pad_token_id",
                                              "penalty_alpha",
                                              "prefill_chunk_size",
                                              "prompt_lookup_num_tokens",
                                              "remove_invalid_values",
                                              "renormalize_logits",
                                              "repetition_penalty",
                                              "return_dict_in_generate",
                                              "sequence_bias",
                                              "speculation_type",
                                              "stop_strings",
                                              "suppress_tokens",
                                              "target_lookbehind",
                                              "temperature",
                                              "token_healing",
                                              "top_h",
                                              "top_k",
                                              "top_p",
                                              "transformers_version",
                                              "typical_p",
                                              "use_cache",
                                              "use_mtp",
                                              "watermarking_config"};

}  // namespace

std::span<const std::string_view> keys_without_effect() { return kWithoutEffect; }

std::span<const std::string_view> keys_of_generation() { return kOfGeneration; }

}}}  // namespace heed::v0::models
