"""``isam system schema``: the JSON schema of descriptions, for editors."""

from __future__ import annotations

import json

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson


@answering("system schema", json_schema="the schema (draft 2020-12)")
def schema(as_json: AsJson = False) -> Answer:
    """Prints the JSON schema of machine descriptions; editors complete and check YAML files with it."""
    from isam.system.schema import json_schema

    found = json_schema()
    return Answer(json.dumps(found, indent=1), {"json_schema": found})
