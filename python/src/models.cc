// Trained models.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "heed/models/describe.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/models/seal.h"
#include "readers.h"

namespace heed::python {

namespace {

using models::Model;

std::string kind_of(const models::ModelConfig& config) {
  return std::string(models::to_string(config.family));
}

nb::dict config_dict(const Model& model) {
  const models::ModelConfig& config = model.config();
  nb::dict dict;
  dict["family"] = kind_of(config);
  dict["architecture"] = config.architecture;
  dict["vocab_size"] = config.vocab_size;
  dict["num_layers"] = config.num_layers;
  dict["num_heads"] = config.num_heads;
  dict["num_kv_heads"] = config.num_kv_heads;
  dict["head_dim"] = config.head_dim;
  dict["hidden_size"] = config.hidden_size;
  dict["intermediate_size"] = config.intermediate_size;
  dict["max_positions"] = config.max_positions;
  nb::list windows;
  for (const models::LayerConfig& layer : config.layers) windows.append(layer.window);
  dict["windows"] = windows;
  dict["has_encoder"] = config.encoder != nullptr;
  dict["start_id"] = config.encoder ? nb::cast(config.start_id) : nb::none();
  return dict;
}

nb::tuple encode(const Model& model, const std::string& text,
                 const std::optional<std::string>& pair, bool add_special_tokens) {
  const text::EncodeOptions options{.add_special_tokens = add_special_tokens};
  const text::Encoding encoding = pair ? model.tokenizer().encode_pair(text, *pair, options)
                                       : model.tokenizer().encode(text, options);
  return nb::make_tuple(encoding.ids, encoding.type_ids);
}

using SwitchedOff = std::vector<std::pair<std::int64_t, std::int64_t>>;
using Ids = std::vector<std::int64_t>;

// The inputs and options of a forward pass over one text.
struct Pass {
  models::Inputs inputs;
  models::ForwardOptions options;
  std::optional<Ids> source_ids;
};

Pass pass_of(const Ids& ids, const Ids& type_ids, const SwitchedOff& switched_off,
             const std::optional<Ids>& source_ids) {
  Pass pass{.inputs = models::Inputs::of(ids), .options = {}, .source_ids = source_ids};
  pass.inputs.type_ids = type_ids;
  for (const auto& [layer, head] : switched_off) {
    pass.options.switched_off.push_back({layer, head});
  }
  return pass;
}

// Reads the source if there is one, and then the text. Without the interpreter's lock.
Tensor<float> run(const Model& model, Pass& pass) {
  return without_lock([&] {
    models::Source source;
    if (pass.source_ids) {
      source = model.read_source(*pass.source_ids);
      pass.options.source = &source;
    }
    return model.forward(pass.inputs, pass.options);
  });
}

nb::object forward(const Model& model, const Ids& ids, const Ids& type_ids,
                   const SwitchedOff& switched_off, const std::optional<Ids>& source) {
  Pass pass = pass_of(ids, type_ids, switched_off, source);
  return to_object(run(model, pass), Library::kNumpy);
}

// Returns [num_layers + 1, tokens, hidden_size].
nb::object hidden_states(const Model& model, const Ids& ids, const Ids& type_ids,
                         const SwitchedOff& switched_off, const std::optional<Ids>& source) {
  Pass pass = pass_of(ids, type_ids, switched_off, source);
  const models::ModelConfig& config = model.config();
  auto states = Tensor<float>::uninitialized(
      {config.num_layers + 1, static_cast<std::int64_t>(ids.size()), config.hidden_size});
  pass.options.hidden_states = [&](std::int64_t index, FloatView state) {
    const auto from = state.elements();
    std::copy(from.begin(), from.end(), states.view().select(0, index).elements().begin());
  };
  run(model, pass);
  return to_object(std::move(states), Library::kNumpy);
}

// The weights of one kind of attention, [num_layers, num_heads, tokens, keys].
nb::object weights_of(const Model& model, Pass& pass, models::AttentionObserver& observer,
                      std::size_t keys) {
  const models::ModelConfig& config = model.config();
  auto weights =
      Tensor<float>::uninitialized({config.num_layers, config.num_heads,
                                    std::ssize(pass.inputs.ids), static_cast<std::int64_t>(keys)});
  observer = [&](const models::AttentionCall& call) {
    const Tensor<float> found = models::weights_of(call);
    std::copy(found.elements().begin(), found.elements().end(),
              weights.view().select(0, call.layer).elements().begin());
  };
  run(model, pass);
  return to_object(std::move(weights), Library::kNumpy);
}

nb::object attentions(const Model& model, const Ids& ids, const Ids& type_ids,
                      const SwitchedOff& switched_off, const std::optional<Ids>& source) {
  Pass pass = pass_of(ids, type_ids, switched_off, source);
  return weights_of(model, pass, pass.options.observer, ids.size());
}

nb::object cross_attentions(const Model& model, const Ids& ids, const Ids& source) {
  Pass pass = pass_of(ids, {}, {}, source);
  return weights_of(model, pass, pass.options.cross_observer, source.size());
}

nb::object logits(const Model& model, const Ids& ids, const SwitchedOff& switched_off,
                  const std::optional<Ids>& source) {
  Pass pass = pass_of(ids, {}, switched_off, source);
  const Tensor<float> hidden = run(model, pass);
  return to_object(without_lock([&] { return model.logits(hidden); }), Library::kNumpy);
}

double mean_loss(const Model& model, const std::vector<std::int64_t>& ids,
                 const SwitchedOff& switched_off) {
  const Pass pass = pass_of(ids, {}, switched_off, std::nullopt);
  return without_lock([&] { return models::mean_loss(model, ids, pass.options); });
}

nb::dict generate(const Model& model, const std::vector<std::int64_t>& prompt,
                  models::GenerateOptions options, const std::string& cache,
                  const nb::object& on_text, bool is_sealed) {
  models::Seal seal;
  if (is_sealed) options.seal = &seal;
  const KvStorage storage = parse_kv_storage(cache, "generate: cache");
  options.past = {storage, storage};
  if (!on_text.is_none()) {
    options.on_text = [&](std::string_view piece) {
      const Locked locked;
      try {
        const nb::bytes bytes(piece.data(), piece.size());
        const nb::object text = bytes.attr("decode")("utf-8", "replace");
        const nb::object answer = call_function(on_text, nb::make_tuple(text));
        return answer.is_none() || nb::cast<bool>(answer);
      } catch (...) {
        Call::current().fail();
        return false;
      }
    };
  }
  const models::Generated result =
      without_lock([&] { return models::generate(model, prompt, options); });
  nb::dict dict;
  dict["ids"] = result.ids;
  dict["text"] =
      nb::bytes(result.text.data(), result.text.size()).attr("decode")("utf-8", "replace");
  dict["reason"] = std::string(models::to_string(result.reason));
  dict["prefill_seconds"] = result.prefill_seconds;
  dict["decode_seconds"] = result.decode_seconds;
  dict["log_probs"] = options.log_probs ? nb::cast(result.log_probs) : nb::none();
  dict["seal"] = is_sealed ? nb::cast(to_string(seal)) : nb::none();
  return dict;
}

nb::dict generate_by_names(const Model& model, const std::vector<std::int64_t>& prompt,
                           const nb::dict& options) {
  models::GenerateOptions read;
  const auto set = [&](const char* name, auto& value) {
    value = read_as<std::remove_reference_t<decltype(value)>>("generate", name, options[name]);
  };
  std::string cache;
  bool is_sealed = false;
  set("max_tokens", read.max_tokens);
  set("temperature", read.sampling.temperature);
  set("top_k", read.sampling.top_k);
  set("top_p", read.sampling.top_p);
  set("min_p", read.sampling.min_p);
  set("repetition_penalty", read.repetition_penalty);
  set("logit_bias", read.logit_bias);
  set("end_ids", read.end_ids);
  set("log_probs", read.log_probs);
  set("seed", read.seed);
  set("stop", read.stop);
  set("cache", cache);
  set("seal", is_sealed);
  return generate(model, prompt, std::move(read), cache, options["on_text"], is_sealed);
}

// The vectors, or with a seal both.
nb::object embed(const Model& model, const std::vector<std::string>& texts, bool is_sealed) {
  models::Seal seal;
  const models::EmbedOptions options{.seal = is_sealed ? &seal : nullptr};
  nb::object vectors =
      to_object(without_lock([&] { return model.embed(texts, options); }), Library::kNumpy);
  return is_sealed ? nb::object(nb::make_tuple(vectors, to_string(seal))) : vectors;
}

// The part, the index or None, and the text of each difference.
nb::list seal_differences(const std::string& expected, const std::string& found) {
  nb::list list;
  const auto all =
      models::seal_differences(models::parse_seal(expected), models::parse_seal(found));
  for (const models::SealDifference& difference : all) {
    const nb::object index = difference.index < 0 ? nb::none() : nb::cast(difference.index);
    list.append(nb::make_tuple(std::string(to_string(difference.part)), index, difference.text));
  }
  return list;
}

// The text of a conversation and its ids. Messages, tools and variables are JSON texts; empty ones
// are left out.
nb::tuple chat_prompt(const Model& model, const std::vector<std::string>& messages,
                      bool add_generation_prompt, const std::string& tools,
                      const std::string& variables) {
  std::vector<text::ChatMessage> chat;
  chat.reserve(messages.size());
  for (const std::string& message : messages) {
    chat.push_back({.role = {}, .content = {}, .json = message});
  }
  const text::ChatOptions options{
      .add_generation_prompt = add_generation_prompt, .tools = tools, .variables = variables};
  return nb::make_tuple(model.tokenizer().apply_chat_template(chat, options),
                        model.tokenizer().encode_chat(chat, options).ids);
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<Model>(module, "Model", "A trained transformer.")
      .def_prop_ro("config", &config_dict)
      .def_prop_ro("num_parameters", &Model::num_parameters)
      .def_prop_ro("num_bytes", &Model::num_bytes)
      .def("encode", &encode, nb::arg("text"), nb::arg("pair") = nb::none(),
           nb::arg("add_special_tokens") = true)
      .def(
          "decode",
          [](const Model& model, const std::vector<std::int64_t>& ids, bool skip_special_tokens) {
            const std::string text =
                model.tokenizer().decode(ids, {.skip_special_tokens = skip_special_tokens});
            return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
          },
          nb::arg("ids"), nb::arg("skip_special_tokens") = true)
      .def("label", [](const Model& model, std::int64_t id) { return model.tokenizer().label(id); })
      .def("chat_prompt", &chat_prompt, nb::arg("messages"),
           nb::arg("add_generation_prompt") = true, nb::arg("tools") = "",
           nb::arg("variables") = "")
      .def("forward", &forward)
      .def("hidden_states", &hidden_states)
      .def("attentions", &attentions)
      .def("cross_attentions", &cross_attentions)
      .def("logits", &logits)
      .def("encoder", &Model::encoder)
      .def("mean_loss", &mean_loss)
      .def("embed", &embed, nb::arg("texts"), nb::arg("seal") = false)
      .def("sha256",
           [](const Model& model) { return without_lock([&] { return model.sha256(); }); })
      .def("generate", &generate_by_names);
  module.def(
      "load_model",
      [](const std::string& path) { return without_lock([&] { return models::load(path); }); },
      nb::arg("path"));
  module.def(
      "describe_models",
      [](const std::string& path) {
        return without_lock([&] {
          std::vector<std::string> found;
          for (const auto& model : models::describe_all(path)) {
            found.push_back(models::to_json(model));
          }
          return found;
        });
      },
      nb::arg("path"));
  module.def("seal_differences", &seal_differences, nb::arg("expected"), nb::arg("found"));
}

}  // namespace heed::python
