from __future__ import annotations

import pytest

from sparktui.bootlog.secrecy import masked
from tests.bootlog.logs import LOGS


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "non-default args: {'port': 8000, 'api_key': ['s3cret', 'other'], 'max_model_len': 8192}",
            "non-default args: {'port': 8000, 'api_key': '•••', 'max_model_len': 8192}",
        ),
        ("{'api_key': 's3cret'}", "{'api_key': '•••'}"),
        (
            "args: Namespace(api_key=None, hf_token='s3cret', port=8000)",
            "args: Namespace(api_key=None, hf_token='•••', port=8000)",
        ),
        ("+ vllm serve m --api-key s3cret --port 1", "+ vllm serve m --api-key ••• --port 1"),
        ("+ vllm serve m --api-key s3cret s3cret2 --port 1", "+ vllm serve m --api-key ••• --port 1"),
        ("+ vllm serve m --api-key='s3 cret'", "+ vllm serve m --api-key=•••"),
        (
            "['vllm', 'serve', '--api-key', 's3cret', '--port']",
            "['vllm', 'serve', '--api-key', •••, '--port']",
        ),
        ("env {'VLLM_API_KEY': 's3cret', 'A': '1'}", "env {'VLLM_API_KEY': •••, 'A': '1'}"),
        ("VLLM_API_KEY: s3cret", "VLLM_API_KEY: •••"),
        ("S3_ACCESS_KEY_ID=s3cret x", "S3_ACCESS_KEY_ID=••• x"),
        ("via https://user:s3cret@proxy:8080/x", "via https://user:•••@proxy:8080/x"),
        ("Authorization: Basic c2VjcmV0c2VjcmV0", "Authorization: Basic •••"),
        ("+ HF_TOKEN=s3cret vllm serve m", "+ HF_TOKEN=••• vllm serve m"),
        ("export VLLM_API_KEY='s3cret'", "export VLLM_API_KEY=•••"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer •••"),
        ("token hf_abcdefghijABCDEFGHIJ0123 refused", "token ••• refused"),
    ],
)
def test_the_value_goes_and_the_rest_stays(said: str, shown: str) -> None:
    assert masked(said) == shown


@pytest.mark.parametrize(
    "harmless",
    [
        "max_num_batched_tokens=8192, hf_config=x, hf_overrides={}",
        "Chunked prefill is enabled with max_num_batched_tokens=8192.",
        "Retrying in hf_transfer mode",
        "the api_key of the request was wrong",
        "MAX_TOKENS=12",
    ],
)
def test_nothing_else_is_touched(harmless: str) -> None:
    assert masked(harmless) == harmless


def test_recorded_logs_without_keys_are_left_alone() -> None:
    for path in sorted(LOGS.rglob("boot_*.log")):
        if "apikey" not in path.name:
            text = path.read_text(encoding="utf-8", errors="replace")
            assert masked(text) == text, path.name
