"""Calls as models of other homes write them: each becomes an action block, if what it calls exists, and only then.

The forms are those of public chat templates and of the parsers of inference servers.
"""

from __future__ import annotations

from typing import Final

import pytest

from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry
from iact.core.language.rewriting import calls_left, in_our_language
from iact.core.language.scanner import scan

REGISTRY: Final = Registry(
    [
        *CORE_ACTIONS.values(),
        ActionSpec(
            "shell.run",
            "Run a script.",
            alias="BASH",
            body="command",
            parameters={
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "timeout": {"type": "number"},
                    "background": {"type": "boolean"},
                },
                "required": ["command"],
            },
        ),
        ActionSpec(
            "files.write",
            "Write a file.",
            body="content",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
            },
        ),
        ActionSpec(
            "web.fetch",
            "Fetch a page.",
            body="url",
            parameters={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
        ),
    ]
)

LS: Final = [("shell.run", "ls -la")]
TIMED: Final = [("shell.run timeout=5", "ls -la")]

FORMS: Final[dict[str, str]] = {
    "hermes": '<tool_call>\n{"name": "shell.run", "arguments": {"command": "ls -la"}}\n</tool_call>',
    "hermes on one line": '<tool_call>{"name": "shell.run", "arguments": {"command": "ls -la"}}</tool_call>',
    "hermes without its end": '<tool_call>\n{"name": "shell.run", "arguments": {"command": "ls -la"}}',
    "hermes with Python's quotes": "<tool_call>\n{'name': 'shell.run', 'arguments': {'command': 'ls -la'}}\n</tool_call>",
    "qwen without a dot": '<tool_call>\n{"name": "shell_run", "arguments": {"command": "ls -la"}}\n</tool_call>',
    "qwen coder": "<tool_call>\n<function=shell.run>\n<parameter=command>\nls -la\n</parameter>\n</function>\n</tool_call>",
    "qwen coder without its wrapper": "<function=shell.run>\n<parameter=command>\nls -la\n</parameter>\n</function>",
    "llama 3.1": '<function=shell.run>{"command": "ls -la"}</function>',
    "llama 3 python tag": '<|python_tag|>{"name": "shell.run", "parameters": {"command": "ls -la"}}',
    "llama 3 python tag with an end": '<|python_tag|>{"type": "function", "name": "shell.run", "parameters": {"command": "ls -la"}}<|eom_id|>',
    "llama 3 built in": '<|python_tag|>shell.run.call(command="ls -la")',
    "llama 3.2 pythonic": '[shell.run(command="ls -la")]',
    "llama 3 bare": '{"name": "shell.run", "parameters": {"command": "ls -la"}}',
    "bare over several lines": '{\n  "name": "shell.run",\n  "arguments": {\n    "command": "ls -la"\n  }\n}',
    "xlam": '[{"name": "shell.run", "arguments": {"command": "ls -la"}}]',
    "mistral": '[TOOL_CALLS][{"name": "shell.run", "arguments": {"command": "ls -la"}, "id": "a1B2c3D4e"}]',
    "mistral with a blank": '[TOOL_CALLS] [{"name": "shell.run", "arguments": {"command": "ls -la"}}]',
    "mistral 11": '[TOOL_CALLS]shell.run{"command": "ls -la"}',
    "ministral": '[TOOL_CALLS]shell.run[ARGS]{"command": "ls -la"}',
    "deepseek 3": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell.run\n```json\n{"command": "ls -la"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek 3.1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell.run<｜tool▁sep｜>{"command": "ls -la"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek 3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="shell.run">\n<｜DSML｜parameter name="command" string="true">ls -la</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.shell.run:0<|tool_call_argument_begin|>{"command": "ls -la"}<|tool_call_end|><|tool_calls_section_end|>',
    "glm": "<tool_call>shell.run\n<arg_key>command</arg_key>\n<arg_value>ls -la</arg_value>\n</tool_call>",
    "glm 4": '<tool_call><name>shell.run</name><arguments>{"command": "ls -la"}</arguments></tool_call>',
    "minimax": '<minimax:tool_call>\n<invoke name="shell.run">\n<parameter name="command">ls -la</parameter>\n</invoke>\n</minimax:tool_call>',
    "seed": "<seed:tool_call>\n<function=shell.run>\n<parameter=command>ls -la</parameter>\n</function>\n</seed:tool_call>",
    "anthropic": '<function_calls>\n<invoke name="shell.run">\n<parameter name="command">ls -la</parameter>\n</invoke>\n</function_calls>',
    "anthropic without its wrapper": '<invoke name="shell.run">\n<parameter name="command">ls -la</parameter>\n</invoke>',
    "granite": '<|tool_call|>[{"name": "shell.run", "arguments": {"command": "ls -la"}}]',
    "phi": '<|tool_call|>[{"name": "shell.run", "arguments": {"command": "ls -la"}}]<|/tool_call|>',
    "lfm": '<|tool_call_start|>[shell.run(command="ls -la")]<|tool_call_end|>',
    "nemotron": '<TOOLCALL>[{"name": "shell.run", "arguments": {"command": "ls -la"}}]</TOOLCALL>',
    "hunyuan": '<tool_calls>[{"name": "shell.run", "arguments": {"command": "ls -la"}}]</tool_calls>',
    "command a": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "shell.run", "parameters": {"command": "ls -la"}}]<|END_ACTION|>',
    "command r": 'Action: ```json\n[{"tool_name": "shell.run", "parameters": {"command": "ls -la"}}]\n```',
    "internlm": '<|action_start|><|plugin|>\n{"name": "shell.run", "parameters": {"command": "ls -la"}}<|action_end|>',
    "gpt-oss": '<|channel|>commentary to=functions.shell.run <|constrain|>json<|message|>{"command": "ls -la"}<|call|>',
    "gpt-oss without marks": 'commentary to=functions.shell.run json{"command": "ls -la"}',
    "glaive": '<functioncall> {"name": "shell.run", "arguments": \'{"command": "ls -la"}\'} </functioncall>',
    "openai": '{"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shell.run", "arguments": "{\\"command\\": \\"ls -la\\"}"}}]}',
    "openai in json": '```json\n{"type": "function", "function": {"name": "shell.run", "arguments": "{\\"command\\": \\"ls -la\\"}"}}\n```',
    "parallel calls": '```json\n{"tool_uses": [{"recipient_name": "functions.shell.run", "parameters": {"command": "ls -la"}}]}\n```',
    "tool_use": '```json\n{"type": "tool_use", "id": "t1", "name": "shell.run", "input": {"command": "ls -la"}}\n```',
    "gemini": '```json\n{"functionCall": {"name": "shell.run", "args": {"command": "ls -la"}}}\n```',
    "json": '```json\n{"name": "shell.run", "arguments": {"command": "ls -la"}}\n```',
    "json list": '```json\n[{"name": "shell.run", "arguments": {"command": "ls -la"}}]\n```',
    "tool_call block": '```tool_call\n{"name": "shell.run", "arguments": {"command": "ls -la"}}\n```',
    "gemma tool_code": '```tool_code\nshell.run(command="ls -la")\n```',
    "gemini tool_code": '```tool_code\nprint(shell.run(command="ls -la"))\n```',
    "gemma 4": '<|tool_call>call:shell.run{command:<|"|>ls -la<|"|>}<tool_call|>',
    "python": '```python\nshell.run(command="ls -la")\n```',
    "python without a name": '```python\nshell.run("ls -la")\n```',
    "xml block": '```xml\n<invoke name="shell.run"><parameter name="command">ls -la</parameter></invoke>\n```',
    "react": 'Thought: I need the files.\nAction: shell.run\nAction Input: {"command": "ls -la"}',
    "react with text": "Action: shell.run\nAction Input: ls -la",
    "react in brackets": "Action: shell.run[ls -la]",
    "langchain": '```json\n{"action": "shell.run", "action_input": {"command": "ls -la"}}\n```',
    "langchain with text": '```json\n{"action": "shell.run", "action_input": "ls -la"}\n```',
    "cline": "<shell.run>\n<command>ls -la</command>\n</shell.run>",
    "tool tag": '<tool>{"name": "shell.run", "arguments": {"command": "ls -la"}}</tool>',
    "the dialect of tools": '```json\n{"action": "shell.run", "arguments": {}, "body": "ls -la"}\n```',
    "an alias": '<tool_call>{"name": "bash", "arguments": {"command": "ls -la"}}</tool_call>',
    "another name of a parameter": '<tool_call>{"name": "shell.run", "arguments": {"cmd": "ls -la"}}</tool_call>',
    "named behind a language": "```bash shell.run\nls -la\n```",
    "named in the first line": "```bash\nshell.run\nls -la\n```",
    "python named": "```python shell.run\nls -la\n```",
}


def acts(text: str) -> list[tuple[str, str]]:
    """The actions of a reply, once it is written in our language."""
    written = in_our_language(text, REGISTRY).text
    return [(block.info, block.body) for block in scan(written, REGISTRY.is_action).blocks if block.action]


@pytest.mark.parametrize("name", FORMS)
def test_a_call_alone_is_made(name: str) -> None:
    assert acts(FORMS[name]) == LS


@pytest.mark.parametrize("name", FORMS)
def test_a_call_behind_a_sentence_is_made_and_the_sentence_stays(name: str) -> None:
    text = f"I look at the files.\n\n{FORMS[name]}\n"
    assert acts(text) == LS
    assert in_our_language(text, REGISTRY).text.startswith("I look at the files.\n\n")


@pytest.mark.parametrize("name", FORMS)
def test_what_is_in_our_language_stays_as_it_is(name: str) -> None:
    written = in_our_language(FORMS[name], REGISTRY).text
    assert in_our_language(written, REGISTRY).text == written
    assert not calls_left(written, REGISTRY).unknown


def test_there_are_enough_forms() -> None:
    assert len(FORMS) >= 60


@pytest.mark.parametrize("name", [name for name in FORMS if "shell.run" in FORMS[name]])
def test_a_call_of_what_does_not_exist_is_found_and_not_made(name: str) -> None:
    text = FORMS[name].replace("shell.run", "terminal.execute")
    assert acts(text) == []
    if "named" not in name and name != "cline":
        assert calls_left(text, REGISTRY).unknown, in_our_language(text, REGISTRY)


@pytest.mark.parametrize("name", FORMS)
def test_a_call_in_a_block_of_text_is_text(name: str) -> None:
    text = f"So it looks:\n\n`````markdown\n# Calls\n\n{FORMS[name]}\n`````\n"
    assert acts(text) == []
    assert not calls_left(text, REGISTRY).unknown


@pytest.mark.parametrize("name", FORMS)
def test_a_call_in_the_body_of_an_action_is_its_body(name: str) -> None:
    text = f"`````files.write path=README.md\n{FORMS[name]}\n`````\n"
    assert acts(text) == [("files.write path=README.md", FORMS[name])]


@pytest.mark.parametrize("name", FORMS)
def test_a_call_in_a_quote_is_a_quote(name: str) -> None:
    quoted = "\n".join(f"> {line}" for line in FORMS[name].split("\n"))
    assert acts(f"You wrote:\n\n{quoted}\n") == []


@pytest.mark.parametrize(
    "text",
    [
        'Models write `<tool_call>{"name": "shell.run", "arguments": {}}</tool_call>` for this.',
        'Some write <tool_call>{"name": "shell.run", "arguments": {"command": "ls"}}</tool_call> for this.',
        '```json\n{"name": "shell.run", "arguments": {"command": "ls"}}\n```\n\nThat is how others call it.',
        'A call is {"name": "shell.run", "arguments": {"command": "ls"}}',
        '```python\nimport os\n\nshell.run(command="ls")\n```',
        '```python\nresult = shell.run(command="ls")\n```',
        "```text\nshell.run\nls\n```",
        "```\nshell.run\nfiles.write\n```",
        '```json\n{"name": "shell.run", "version": 1}\n```',
        '```json\n{"name": "iact", "arguments": {"a": 1}, "scripts": {}}\n```',
        "```markdown shell.run\nls\n```",
        "    <tool_call>{}</tool_call>",
        "The action: shell.run",
        "- Action: shell.run is what you want",
    ],
)
def test_examples_do_not_act(text: str) -> None:
    assert acts(text) == []
    assert in_our_language(text, REGISTRY).text == text


@pytest.mark.parametrize(
    "example",
    [
        '```json\n{"name": "shell.run", "arguments": {"command": "pwd"}}\n```',
        '```tool_call\n{"name": "shell.run", "arguments": {"command": "pwd"}}\n```',
        '```python\nshell.run(command="pwd")\n```',
    ],
)
@pytest.mark.parametrize(
    "action", ["```shell.run\nls -la\n```", "1. So:\n\n   ```shell.run\n   ls -la\n   ```", FORMS["hermes"]]
)
def test_a_call_that_could_be_an_example_does_not_act_before_an_action(example: str, action: str) -> None:
    assert acts(f"As others write it:\n\n{example}\n\n{action}") == LS
    assert acts(f"{action}\n\n{example}") == [*LS, ("shell.run", "pwd")]


def test_several_calls_are_made_in_order() -> None:
    first = FORMS["hermes"]
    second = first.replace("ls -la", "pwd")
    assert acts(f"Two things.\n{first}\nAnd:\n{second}") == [*LS, ("shell.run", "pwd")]


def test_several_calls_in_one_mark_are_made() -> None:
    text = (
        '<function_calls>\n<invoke name="shell.run">\n<parameter name="command">ls -la</parameter>\n</invoke>\n'
        '<invoke name="web.fetch">\n<parameter name="url">https://a.example</parameter>\n</invoke>\n</function_calls>'
    )
    assert acts(text) == [*LS, ("web.fetch", "https://a.example")]


def test_other_arguments_stand_behind_the_name() -> None:
    text = '<tool_call>{"name": "shell.run", "arguments": {"command": "ls -la", "timeout": 5}}</tool_call>'
    assert acts(text) == TIMED


def test_a_text_of_several_lines_becomes_the_body_with_all_its_fences() -> None:
    content = "# Title\n\n```bash\nls\n```\n\n```\nx\n```"
    text = (
        f"<tool_call>\n<function=files.write>\n<parameter=path>\nREADME.md\n</parameter>\n<parameter=content>\n{content}\n"
        "</parameter>\n</function>\n</tool_call>"
    )
    assert acts(text) == [('files.write path="README.md"', content)]


def test_a_text_of_several_lines_that_is_no_body_becomes_a_variable() -> None:
    text = '{"name": "CALL", "arguments": {"name": "a", "role": "one\\ntwo", "message": "Do it."}}'
    assert acts(text) == [("VAR role_1", "one\ntwo"), ('CALL name="a" role=$role_1', "Do it.")]


@pytest.mark.parametrize(
    "invented",
    [
        "<tool_response>\na.txt\n</tool_response>\nIt is a.txt.",
        "Observation: a.txt\nThought: done",
        "<function_results>\na.txt\n</function_results>",
        "Result of `shell.run`:\n```\na.txt\n```",
    ],
)
def test_an_invented_result_behind_a_call_is_cut(invented: str) -> None:
    written = in_our_language(f"{FORMS['hermes']}\n{invented}", REGISTRY)
    scanned = scan(written.text, REGISTRY.is_action)
    assert "a.txt" not in scanned.kept
    assert [block.body for block in scanned.blocks if block.action] == ["ls -la"]


# --- list items ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1. First I look:\n\n   ```shell.run\n   ls -la\n   ```",
        "1. First I look:\n   ```shell.run\n   ls -la\n   ```\n2. Then I go on.",
        "- ```shell.run\n  ls -la\n  ```",
        "* one\n  * two\n\n    ```shell.run\n    ls -la\n    ```",
        "10. Look:\n\n    ```shell.run\n    ls -la\n    ```",
        "1. Look:\n\n```shell.run\nls -la\n```",
        "1. Look:\n    ```shell.run\nls -la\n    ```",
        "1. Look:\n\n   ```bash shell.run\n   ls -la\n   ```",
        '1. Look:\n\n   ```json\n   {"name": "shell.run", "arguments": {"command": "ls -la"}}\n   ```',
        '1. Look:\n\n   <tool_call>{"name": "shell.run", "arguments": {"command": "ls -la"}}</tool_call>',
    ],
)
def test_an_action_in_a_list_item_is_run(text: str) -> None:
    assert acts(text) == LS


def test_the_body_of_an_action_in_a_list_keeps_its_own_indentation() -> None:
    text = "1. Write:\n\n   ```files.write path=a.py\n   if x:\n       y()\n   ```\n2. Run:\n\n   ```shell.run\n   ls -la\n   ```"
    assert acts(text) == [("files.write path=a.py", "if x:\n    y()"), *LS]


def test_a_first_line_in_a_list_item_is_read_to_its_end() -> None:
    text = '- ~~~shell.run command="echo `date` done"\n  ~~~\n'
    assert acts(text) == [('shell.run command="echo `date` done"', "")]


@pytest.mark.parametrize(
    "text",
    [
        "- ```shell.run``` runs\n  all of these\n  ```\n  a.sh\n  ```",
        "> 1. Look:\n>\n>    ```shell.run\n>    ls\n>    ```",
        "1. Look:\n\n   > ```shell.run\n   > ls\n   > ```",
        "Text.\n\n    ```shell.run\n    ls\n    ```",
        "- ```markdown\n  ```shell.run\n  ls\n  ```\n  ```",
    ],
)
def test_other_indented_blocks_are_not_run(text: str) -> None:
    assert acts(text) == []
