# Runs the verify.py of each unpacked bundle whose directory stands on a line of
# standard input, as `python3 -I verify.py DIRECTORY --key KEY` would, and answers
# with one line: its exit code, and the first thing it says that failed. It only
# spares a thousand starts of the interpreter.
import contextlib
import io
import sys
import traceback

key = sys.argv[1]
compiled = {}
for line in sys.stdin:
    directory = line.rstrip("\n")
    script = directory + "/verify.py"
    with open(script, "rb") as file:
        source = file.read()
    code = compiled.get(source)
    if code is None:
        code = compiled[source] = compile(source, script, "exec")
    sys.argv = [script, directory, "--key", key]
    said, status = io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            exec(code, {"__name__": "__main__", "__file__": script})
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            status = 2
            traceback.print_exc()
    lines = said.getvalue().splitlines()
    failed = [text for text in lines if text.startswith("FAIL")] or lines[-1:]
    print(status, ascii(failed[0] if status and failed else ""), flush=True)
