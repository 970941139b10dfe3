"""Templates in the manner of model families, which use what those use, and conversations for them. The texts are our own."""

LLAMA = r"""{{- bos_token }}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not tools_in_user_message is defined %}{%- set tools_in_user_message = true %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "1 Jan" %}{%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "Tools:\n\n" }}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\n\n" }}{%- endfor %}
{%- endif %}
{{- "Today: " + date_string + "\n\n" + system_message + "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Tools need a first message") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\n\nUse one of these:\n' -}}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\n\n" }}{%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("One call at a time") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' ~ arg_val ~ '"' }}{%- if not loop.last %}{{- ", " }}{%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else %}
            {{- '{"name": "' + tool_call.name + '", "parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}" }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}
"""

QWEN3 = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}
    {{- "# Tools\n<tools>" }}
    {%- for tool in tools %}{{- "\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<tool_response>\n' }}{{- content }}{{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}"""

MISTRAL = r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS][" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST]" + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST]" + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS][" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Ids of calls have 9 characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- message["content"] + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS]{"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported") }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = r"""{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Roles must alternate user/assistant") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{'<start_of_turn>model\n'}}{%- endif -%}
"""

PHI = r"""{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + (message['content'] or '') + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"""

SMOL = r"""{# ───── defaults ───── #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{# ───── reasoning mode ───── #}
{%- if enable_thinking -%}
  {%- set reasoning_mode = "/think" -%}
{%- else -%}
  {%- set reasoning_mode = "/no_think" -%}
{%- endif -%}
{{- "<|im_start|>system\n" -}}
{%- if messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}
    {%- set reasoning_mode = "/no_think" -%}
  {%- elif "/think" in system_message -%}
    {%- set reasoning_mode = "/think" -%}
  {%- endif -%}
  {%- set custom_instructions = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{%- set today = strftime_now("%d %B %Y") -%}
{{- "Today Date: " ~ today ~ "\nReasoning Mode: " + reasoning_mode + "\n\n" -}}
{%- if custom_instructions -%}
  {{- custom_instructions + "\n\n" -}}
{%- else -%}
  {%- if reasoning_mode == "/think" -%}{{- "Think first.\n\n" -}}{%- else -%}{{- "Be quick.\n\n" -}}{%- endif -%}
{%- endif -%}
{%- if xml_tools or tools -%}
  {{- "### Tools\n\n" -}}
  {%- set ns = namespace(xml_tool_string="Call:\n<tools>\n") -%}
  {%- for tool in (xml_tools or tools)[:] -%}
    {%- set ns.xml_tool_string = ns.xml_tool_string ~ (tool | string) ~ "\n" -%}
  {%- endfor -%}
  {{- ns.xml_tool_string + "</tools>\n\n" -}}
{%- endif -%}
{{- "<|im_end|>\n" -}}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\n"  + content + "<|im_end|>\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if reasoning_mode == "/think" -%}
            {{ "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- elif message.role == "tool" -%}
    {{ "<|im_start|>" + "user\n"  + content + "<|im_end|>\n" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {%- if reasoning_mode == "/think" -%}
        {{ "<|im_start|>assistant\n" }}
    {%- else -%}
        {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n"  }}
    {%- endif -%}
{%- endif -%}
"""

OLMO = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] + '\n' }}"
    "{% elif message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}"
    "{% if not loop.last %}{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}{% else %}{{ '<|assistant|>\n'  + message['content'] "
    "+ eos_token }}{% endif %}{% endif %}{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}"
)

GRANITE = r"""{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set system_message = "Knowledge: April.\nToday: " + strftime_now('%B %d, %Y') + "." %}
    {%- if tools and documents %}
        {%- set system_message = system_message + " Tools and documents." %}
    {%- elif tools %}
        {%- set system_message = system_message + " Tools." %}
    {%- elif documents %}
        {%- set system_message = system_message + " Documents." %}
    {%- elif thinking %}
        {%- set system_message = system_message + " Think." %}
    {%- endif %}
    {%- if 'citations' in controls and documents %}{%- set system_message = system_message + ' Cite.' %}{%- endif %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\n' }}
{%- if tools %}{{- '<|start_of_role|>tools<|end_of_role|>' }}{{- tools | tojson(indent=4) }}{{- '<|end_of_text|>\n' }}{%- endif %}
{%- if documents %}
    {{- '<|start_of_role|>documents<|end_of_role|>' }}
    {%- for document in documents %}
        {{- 'Document ' + loop.index | string + '\n' }}{{- document['text'] }}{%- if not loop.last %}{{- '\n\n'}}{%- endif%}
    {%- endfor %}
    {{- '<|end_of_text|>\n' }}
{%- endif %}
{%- for message in loop_messages %}
    {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + (message['content'] | default('', true) | string) + '<|end_of_text|>\n' }}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|start_of_role|>assistant' }}
        {%- if controls %}{{- ' ' + controls | tojson()}}{%- endif %}
        {{- '<|end_of_role|>' }}
    {%- endif %}
{%- endfor %}"""

DEEPSEEK = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, "
    "is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set "
    "ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|User|>' + message['content']}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and not message['content'] %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls']%}"
    "{%- if not ns.is_first %}{{'<|Assistant|><calls>' + tool['type'] + '<sep>' + tool['function']['name'] + '\\n```json\\n' + "
    "(tool['function']['arguments'] | tojson) + '\\n```'}}{%- set ns.is_first = true -%}{%- else %}{{'\\n' + tool['type'] + '<sep>' + "
    "tool['function']['name']}}{{'<end>'}}{%- endif %}{%- endfor %}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] %}"
    "{%- if ns.is_tool %}{{'<outputs end>' + message['content']}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}"
    "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|Assistant|>' + content + eos_token}}"
    "{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<outputs><output>' + "
    "message['content'] + '</output>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<output>' + message['content'] + '</output>'}}"
    "{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<outputs end>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}"
    "{{'<|Assistant|><think>\\n'}}{% endif %}"
)

GPT_OSS = r"""{#- types of parameters as TypeScript -#}
{%- macro type_of(spec, required, is_nullable=false) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {%- if spec['items']['type'] == "string" -%}{{- "string[]" }}{%- else -%}{{- type_of(spec['items'], required) + "[]" }}{%- endif -%}
            {%- if spec.nullable -%}{{- " | null" }}{%- endif -%}
        {%- else -%}{{- "any[]" }}{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping and spec.type[0] is defined -%}
        {%- if spec.type | length > 1 -%}{{- spec.type | join(" | ") }}{%- else -%}{{- spec.type[0] }}{%- endif -%}
    {%- elif spec.oneOf -%}
        {%- set has_object = namespace(value=false) %}
        {%- for variant in spec.oneOf -%}
            {%- if variant.type == "object" %}{% set has_object.value = true %}{% endif -%}
            {{- type_of(variant, required) -}}
            {%- if variant.description %}{{- " // " + variant.description }}{% endif -%}
            {%- if variant.default is defined %}{{ " // default: " + variant.default|tojson }}{%- endif -%}
            {%- if not loop.last %}{{- " | " }}{% endif -%}
        {%- endfor -%}
    {%- elif spec.type == "string" -%}
        {%- if spec.enum -%}{{- '"' + spec.enum|join('" | "') + '"' -}}{%- else -%}{{- "string" }}{%- endif -%}
    {%- elif spec.type in ["number", "integer"] -%}{{- "number" }}
    {%- elif spec.type == "object" -%}
        {%- if spec.properties -%}
            {{- "{\n" }}
            {%- for name, property in spec.properties.items() -%}
                {{- name -}}{%- if name not in (spec.required or []) -%}{{- "?" }}{%- endif -%}
                {{- ": " }}{{ type_of(property, spec.required or []) }}{%- if not loop.last %}{{-", " }}{% endif -%}
            {%- endfor -%}
            {{- "}" }}
        {%- else -%}{{- "object" }}{%- endif -%}
    {%- else -%}{{- "any" }}{%- endif -%}
{%- endmacro -%}
{%- macro tools_of(name, tools) -%}
    {{- "## " + name + "\n\nnamespace " + name + " {\n\n" }}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- "// " + tool.description + "\ntype "+ tool.name + " = " }}
        {%- if tool.parameters and tool.parameters.properties %}
            {{- "(_: {\n" }}
            {%- for param, spec in tool.parameters.properties.items() %}
                {%- if spec.description %}{{- "// " + spec.description + "\n" }}{%- endif %}
                {{- param }}{%- if param not in (tool.parameters.required or []) -%}{{- "?" }}{%- endif -%}{{- ": " }}
                {{- type_of(spec, tool.parameters.required or []) }}
                {%- if spec.default is defined -%}
                    {%- if spec.default is string and spec.default != "" %}{{- ", // default: " ~ spec.default }}{%- else %}{{- ", // default: " + spec.default|tojson }}{%- endif -%}
                {%- endif -%}
                {{- ",\n" if not loop.last else "\n" }}
            {%- endfor %}
            {{- "}) => any;\n\n" }}
        {%- else -%}{{- "() => any;\n\n" }}{%- endif -%}
    {%- endfor %}
    {{- "} // namespace " + name }}
{%- endmacro -%}
{%- if reasoning_effort is not defined %}{%- set reasoning_effort = "medium" %}{%- endif %}
{{- "<|start|>system<|message|>Reasoning: " + reasoning_effort + "\n" + strftime_now("%Y-%m-%d") + "<|end|>" }}
{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set developer_message = messages[0].content %}{%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}{%- set loop_messages = messages %}
{%- endif %}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if developer_message %}{{- "# Instructions\n\n" + developer_message + "\n\n" }}{%- endif %}
    {%- if tools -%}{{- "# Tools\n\n" }}{{- tools_of("functions", tools) }}{%- endif -%}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_tool_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if "content" in message and message.content is string and "<|channel|>analysis" in message.content %}
            {{- raise_exception("The content has a channel") }}
        {%- endif %}
        {%- if "tool_calls" in message %}
            {%- set future_final_message = namespace(found=false) %}
            {%- for future_message in loop_messages[loop.index:] %}
                {%- if future_message.role == 'assistant' and "tool_calls" not in future_message %}{%- set future_final_message.found = true %}{%- endif %}
            {%- endfor %}
            {%- set tool_call = message.tool_calls[0] %}
            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
            {%- if message.thinking and not future_final_message.found %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}{%- endif %}
            {{- "<|start|>assistant to=functions." + tool_call.name + "<|channel|>commentary json<|message|>" }}{{- tool_call.arguments|tojson }}{{- "<|call|>" }}
            {%- set last_tool_call.name = tool_call.name %}
        {%- elif loop.last and not add_generation_prompt %}
            {%- if "thinking" in message %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}{%- endif %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" ~ message.content ~ "<|end|>" }}
            {%- set last_tool_call.name = none %}
        {%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if last_tool_call.name is none %}{{- raise_exception("A tool speaks before it is called") }}{%- endif %}
        {{- "<|start|>functions." + last_tool_call.name + " to=assistant<|message|>" + message.content|tojson + "<|end|>" }}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + (message.content if message.content is string else message.content | map(attribute='text') | join('\n')) + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"""

COMMAND = r"""{{ bos_token }}{%- macro document_turn(documents) -%}
{# a list of results #}
[{% for doc in documents %}

{"id": "{{ loop.index0 }}", {% for key, value in doc.items() if key != 'id' %}{{ key | tojson }}: {{ value | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}}{% if not loop.last %},{% endif %}
{% endfor %}

]
{%- endmacro %}
{%- macro python_type(spec) %}
{%- set basic = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} %}
{%- if basic[spec.type] is defined %}
  {{- basic[spec.type] }}
{%- elif spec.type == "array" %}
  {{- "List[" + python_type(spec['items']) + "]"}}
{%- elif spec.type == "object" %}
  {{- "Dict" }}
{%- elif spec.type is iterable %}
  {{- "Union[" }}{%- for t in spec.type %}{{- python_type({"type": t}) }}{%- if not loop.last %},{%- endif %}{%- endfor %}{{- "]" }}
{%- else %}
  {{- "Any" }}
{%- endif %}
{%- endmacro -%}
{%- set ns = namespace(tool_idx=0, seen=[]) -%}
<|SYSTEM|>{% if messages[0].role|lower == 'system' %}{{ messages[0].content | indent(2) }}{% else %}Help.{% endif %}
{% for tool in tools or [] %}
def {{ tool.function.name }}({% for name, fields in (tool.function.parameters.properties | default({})) | dictsort %}{{ name }}: {{ python_type(fields) }}{% if name not in tool.function.parameters.required | default([]) %} = None{% endif %}{% if not loop.last %}, {% endif %}{% endfor %}):
    '''{{ tool.function.description | replace("'", '"') | capitalize }}'''
{% endfor %}
{%- if documents %}<|RESULTS|>{{ document_turn(documents) }}{% endif %}
{%- for message in messages if message.role != 'system' %}
{%- if message.role == 'user' %}<|USER|>{{ message.content | list | length if message.content is not string else message.content | trim }}
{%- elif message.tool_calls %}<|ACTION|>
{%- for call in message.tool_calls %}{% set ns.seen = ns.seen + [call.function.name] %}{{ ns.tool_idx }}:{{ call.function.name }} {% set ns.tool_idx = ns.tool_idx + 1 %}{%- endfor %}
{%- else %}<|{{ message.role | upper }}|>{{ message.content or '' }}
{%- endif %}
{%- endfor -%}
{{ ns.seen | unique | sort | join(',') }}
{%- if add_generation_prompt %}<|CHATBOT|>{% endif %}"""

FAMILIES = {
    "Llama 3": LLAMA,
    "Qwen3": QWEN3,
    "Mistral": MISTRAL,
    "Gemma": GEMMA,
    "Phi": PHI,
    "SmolLM3": SMOL,
    "OLMo 2": OLMO,
    "Granite": GRANITE,
    "DeepSeek": DEEPSEEK,
    "gpt-oss": GPT_OSS,
    "Command R": COMMAND,
}

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'The <weather> é, "now"',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "A city's name"},
                "days": {"type": "integer", "default": 1},
                "units": {"type": "string", "enum": ["C", "F"]},
                "parts": {"type": "array", "items": {"type": "number"}},
                "when": {"type": ["string", "null"], "default": None},
            },
            "required": ["city"],
        },
    },
}
NOTHING = {"type": "function", "function": {"name": "nothing", "description": "Does it", "parameters": {"type": "object", "properties": {}}, "return": 1}}


def call(arguments: object) -> dict:
    return {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": arguments}}


def tool(content: str) -> dict:
    return {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": content}


def said(*texts: str, first: str = "user") -> list[dict]:
    roles = ["user", "assistant"] if first == "user" else ["system", "user", "assistant"]
    order = roles if first == "user" else [roles[0], *roles[1:] * len(texts)]
    return [{"role": order[i % 2] if first == "user" else order[i], "content": text} for i, text in enumerate(texts)]


CONVERSATIONS = [
    said("Hi"),
    said("Be kind. /no_think", " Hi \n", first="system"),
    said("Hi", "<think>\nhm\n</think>\n\nYes", "Why?"),
    [*said("S", "w?", first="system"), {"role": "assistant", "content": "", "tool_calls": [call({"city": "Paris", "days": 1})]}, tool('{"t": 20}')],
    [*said("w?"), {"role": "assistant", "content": None, "tool_calls": [call({"x": [1, 2.5, True, None]}), call({})]}, tool("a"), tool("b")],
    [*said("w?"), {"role": "assistant", "tool_calls": [call('{"city": "Rome"}')]}, tool("a"), {"role": "assistant", "content": "20"}],
    [{"role": "user", "content": [{"type": "text", "text": " one"}, {"type": "image"}]}, {"role": "assistant", "content": "two"}],
    [*said("q"), {"role": "assistant", "content": "a", "reasoning_content": "because"}, *said("r")],
    [*said("q"), {"role": "assistant", "content": "a", "thinking": "deep"}, *said("r"), {"role": "assistant", "content": "b", "reasoning": "r2"}],
    [{"role": "assistant", "content": "I speak first."}, *said("r")],
    [*said("q"), {"role": "system", "content": "late"}, *said("q2")],
    [{"role": "developer", "content": "Be brief."}, *said("猫 é <|im_end|>")],
]
VARIABLES = [{}, {"enable_thinking": False, "reasoning_effort": "high", "date_string": "1 Jan", "documents": [{"title": "T", "text": "X\nY"}], "controls": {"citations": True}, "tools_in_user_message": False}]
