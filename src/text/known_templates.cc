#include <array>
#include <utility>
#include <vector>

#include "text/chat_template.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

// The placeholder for a default system message in the texts below.
constexpr std::string_view kSystemHole = "%SYSTEM%";
// The placeholder for eos_token in formats.
constexpr std::string_view kEndHole = "%EOS%";

struct KnownTemplate {
  std::string jinja;
  ChatFormat format;
};

// clang-format off
constexpr const char* kChatMlTurns =
    R"({% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %})";
constexpr const char* kChatMlTurnsAfterSystem =
    R"({% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n%SYSTEM%<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %})";
constexpr const char* kChatMlPrompt =
    R"({% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";
constexpr const char* kNoPromptUnlessAsked =
    R"({% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %})";

constexpr const char* kQwen25 = R"({%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- '%SYSTEM%' }}
    {%- endif %}
    {{- "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\n%SYSTEM%<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\n<tool_call>\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- message.content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
)";

constexpr const char* kLlama3Turns =
    R"({% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %})";
constexpr const char* kLlama3Prompt =
    R"({{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }})";

constexpr const char* kZephyr = R"({% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %})";
// clang-format on

std::vector<KnownTemplate> make_known_templates() {
  ChatFormat chat_ml;
  chat_ml.before_role = "<|im_start|>";
  chat_ml.before_content = "\n";
  chat_ml.behind_content = "<|im_end|>\n";
  ChatFormat chat_ml_after_system = chat_ml;
  chat_ml_after_system.default_system = kSystemHole;
  ChatFormat llama3;
  llama3.begins = true;
  llama3.before_role = "<|start_header_id|>";
  llama3.before_content = "<|end_header_id|>\n\n";
  llama3.behind_content = "<|eot_id|>";
  llama3.trims = true;
  ChatFormat first_llama3 = llama3;
  first_llama3.always_prompts = true;
  ChatFormat zephyr;
  zephyr.before_role = "<|";
  zephyr.before_content = "|>\n";
  zephyr.behind_content = std::string(kEndHole) + "\n";
  const auto joined = [](auto... parts) { return (std::string() + ... + parts); };
  std::vector<KnownTemplate> all{
      {joined(kChatMlTurns, kChatMlPrompt), chat_ml},
      {joined(kNoPromptUnlessAsked, kChatMlTurns, kChatMlPrompt), chat_ml},
      {joined(kChatMlTurnsAfterSystem, kChatMlPrompt), chat_ml_after_system},
      {kQwen25, chat_ml_after_system},
      {joined(kLlama3Turns, kLlama3Prompt), first_llama3},
      {joined(kLlama3Turns, "{% if add_generation_prompt %}", kLlama3Prompt, "{% endif %}"),
       llama3},
      {kZephyr, zephyr}};
  for (KnownTemplate& known : all) known.jinja = normalised_template(known.jinja);
  return all;
}

const std::vector<KnownTemplate>& known_templates() {
  static const std::vector<KnownTemplate> all = make_known_templates();
  return all;
}

// True if a Jinja string with this content needs no unescaping.
bool is_plain(std::string_view text) {
  return text.find_first_of("'\"\\") == std::string_view::npos;
}

// Returns the text of the template at the placeholders of `known`, which must be the same at each;
// empty if `known` has none. Returns nothing if the two differ elsewhere.
std::optional<std::string_view> system_of(std::string_view jinja, std::string_view known) {
  std::optional<std::string_view> system;
  for (;;) {
    const std::size_t hole = known.find(kSystemHole);
    if (hole == std::string_view::npos) break;
    if (jinja.substr(0, hole) != known.substr(0, hole)) return std::nullopt;
    jinja.remove_prefix(hole);
    known.remove_prefix(hole + kSystemHole.size());
    // Every placeholder ends at the end of its string or at the next token.
    const std::string_view stop = known.substr(0, known.find('\'') + 1);
    const std::string_view found = jinja.substr(0, jinja.find(stop));
    if (!is_plain(found) || (system && *system != found)) return std::nullopt;
    system = found;
    jinja.remove_prefix(found.size());
  }
  if (jinja != known) return std::nullopt;
  return system.value_or("");
}

void replace_hole(std::string& text, std::string_view hole, std::string_view content) {
  const std::size_t found = text.find(hole);
  if (found != std::string::npos) text.replace(found, hole.size(), content);
}

}  // namespace

std::string normalised_template(std::string_view jinja) {
  std::string result;
  bool is_code = false;
  char quote = '\0';
  for (std::size_t i = 0; i < jinja.size(); ++i) {
    const char c = jinja[i];
    const char following = i + 1 < jinja.size() ? jinja[i + 1] : '\0';
    if (c == '\r') {
      if (following != '\n') result += '\n';
      continue;
    }
    if (quote != '\0' && c == '\\') {
      ++i;
      if (following != 'n') result += c;
      result += following == 'n' ? '\n' : following;
      continue;
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (is_code && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '{' && (following == '{' || following == '%')) {
      is_code = true;
    } else if (following == '}' && (c == '}' || c == '%')) {
      is_code = false;
    }
    result += c;
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

std::optional<ChatFormat> known_format(std::string_view normalised, const std::string& end) {
  for (const auto& [jinja, known] : known_templates()) {
    const auto system = system_of(normalised, jinja);
    if (!system) continue;
    ChatFormat format = known;
    if (format.default_system) format.default_system = *system;
    replace_hole(format.behind_content, kEndHole, end);
    return format;
  }
  return std::nullopt;
}

std::string_view family_of_template(std::string_view normalised) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kSigns{
      {{"<|im_sep|>", "Phi-4's"},
       {"Cutting Knowledge Date", "Llama 3.1's or a later one's"},
       {"<think>", "that of a model that thinks aloud"},
       {"[INST]", "Mistral's or Llama 2's"},
       {"<start_of_turn>", "Gemma's"},
       {"<|end|>", "Phi-3's"},
       {"<|START_OF_TURN_TOKEN|>", "Command R's"},
       {"<|im_start|>", "a ChatML of its own"},
       {"<|start_header_id|>", "a Llama 3 of its own"}}};
  for (const auto& [sign, family] : kSigns) {
    if (normalised.find(sign) != std::string_view::npos) return family;
  }
  return {};
}

}}}  // namespace heed::v0::text
