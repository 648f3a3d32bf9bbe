"""``isam system``: descriptions of machines, one file per verb."""

from __future__ import annotations

import typer

from isam.cli.system import calibrate, check, listing, new, schema, show, trial

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Descriptions of machines.")
app.command("list")(listing.list_)
app.command("show")(show.show)
app.command("check")(check.check)
app.command("schema")(schema.schema)
app.command("new")(new.new)
app.command("test")(trial.trial)
app.command("calibrate")(calibrate.calibrate)
