"""The reader of prompt files under the load process's roof; the format itself belongs to the schema."""

from sparktui.schema.promptfile import FilePrompt, PromptFileError, read

__all__ = ["FilePrompt", "PromptFileError", "read"]
