"""The requests of clients: the part of OpenAI's Responses and chat completions that a session can answer.

Fields that only tune a model (temperature, top_p, reasoning …) are accepted and have no effect: the server's operator
decides which model answers, and how. Fields that would change the work are refused if they can't be supported.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text: TypeAlias = Annotated[str, Field(max_length=4_000_000)]


class _Given(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class InputText(_Given):
    """Text in a message."""

    type: Literal["input_text", "output_text", "text"]
    text: Text


class InputFile(_Given):
    """A file, as a data URL. The root gets it as a variable."""

    type: Literal["input_file"]
    file_data: Text
    filename: str = Field(default="file", max_length=255)


class InputImage(_Given):
    """A picture, as a data URL."""

    type: Literal["input_image"]
    image_url: Text


InputPart: TypeAlias = Annotated[InputText | InputFile | InputImage, Field(discriminator="type")]


class InputMessage(_Given):
    """A message. The assistant's messages are ignored if the session has them."""

    type: Literal["message"] = "message"
    id: str | None = Field(default=None, max_length=250)
    role: Literal["user", "assistant", "system", "developer"]
    content: Text | list[InputPart]


class QuestionAnswer(_Given):
    """The answer to a question, which was sent as a call of the function `iact_clearance`."""

    type: Literal["function_call_output"]
    call_id: str = Field(max_length=190)
    output: Text
    """Its own bound is told in a sentence when the question is answered."""


class OutputItem(_Given):
    """An item from this server that the client sends back. It is ignored, because the session has it already."""

    type: Literal["function_call", "mcp_call", "reasoning"]
    id: str | None = Field(default=None, max_length=250)


InputItem: TypeAlias = InputMessage | QuestionAnswer | OutputItem


class CreateResponse(_Given):
    """`POST /v1/responses`."""

    model: str = Field(default="iact", max_length=200, json_schema_extra={"enum": ["iact"]})
    input: Text | list[InputItem]
    instructions: Text | None = None
    previous_response_id: str | None = Field(default=None, max_length=200)
    stream: bool | None = False
    background: bool | None = False
    store: bool | None = True
    tools: list[dict[str, object]] | None = None
    tool_choice: object = None
    text: dict[str, object] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    user: str | None = Field(default=None, max_length=500)
    safety_identifier: str | None = Field(default=None, max_length=500)
    conversation: str | dict[str, object] | None = None
    prompt: dict[str, object] | None = None
    metadata: (
        Annotated[
            dict[
                Annotated[str, StringConstraints(max_length=64)],
                Annotated[str, StringConstraints(max_length=512)],
            ],
            Field(max_length=16),
        ]
        | None
    ) = None


class _ChatImageAddress(_Given):
    url: Text


class ChatImage(_Given):
    """A picture in a message of a chat, as a data URL."""

    type: Literal["image_url"]
    image_url: _ChatImageAddress


class _ChatFileData(_Given):
    file_data: Text
    filename: str = Field(default="file", max_length=255)


class ChatFile(_Given):
    """A file in a message of a chat, as a data URL."""

    type: Literal["file"]
    file: _ChatFileData


ChatPart: TypeAlias = Annotated[InputText | ChatImage | ChatFile, Field(discriminator="type")]


class CompletionMessage(_Given):
    """A message of a chat."""

    role: Literal["user", "assistant", "system", "developer", "tool"]
    content: Text | list[ChatPart] | None = None
    tool_call_id: str | None = Field(default=None, max_length=190)

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "\n\n".join(one.text for one in self.content if isinstance(one, InputText))
        return self.content or ""

    @property
    def files(self) -> list[InputImage | InputFile]:
        """The pictures and files of the message."""
        found: list[InputImage | InputFile] = []
        for part in self.content if isinstance(self.content, list) else ():
            match part:
                case ChatImage():
                    found.append(InputImage(type="input_image", image_url=part.image_url.url))
                case ChatFile(file=file):
                    found.append(
                        InputFile(type="input_file", file_data=file.file_data, filename=file.filename)
                    )
        return found


class StreamOptions(_Given):
    """What a stream includes in addition to the answer."""

    include_usage: bool | None = False


class CreateCompletion(_Given):
    """`POST /v1/chat/completions`: the whole chat each time, as that API requires."""

    model: str = Field(default="iact", max_length=200, json_schema_extra={"enum": ["iact"]})
    messages: list[CompletionMessage] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=1, ge=1, le=1)
    tools: list[dict[str, object]] | None = None
    tool_choice: object = None
    functions: list[dict[str, object]] | None = None
    function_call: object = None
    response_format: dict[str, object] | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    store: bool | None = None
    user: str | None = Field(default=None, max_length=500)
    safety_identifier: str | None = Field(default=None, max_length=500)
