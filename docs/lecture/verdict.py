"""How an exercise answers: in a sentence, never with a traceback."""

import functools
import traceback


def verdict(check, answer):
    """Say whether an answer is right; if not, what is missing, what differs, or where it stopped."""
    name = answer.__name__

    @functools.wraps(answer)
    def returned(*given, **named):
        found = answer(*given, **named)
        assert found is not None, f"{name} returns nothing; is its last line, return ..., missing?"
        return found

    try:
        check(returned)
    except NotImplementedError as missing:
        print(f"Still to be written: {name}. Hint: {missing}.")
    except AssertionError as found:
        print(f"Not right yet: {str(found).strip()}")
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.name == name]
        where = f"line {lines[-1]} of its cell or file" if lines else "the check, with what it returned"
        print(f"{name} does not run yet. {type(error).__name__} in {where}: {error}")
    else:
        print("right")
