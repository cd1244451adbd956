"""Short tracebacks of refused calls: one frame of the package, then the message."""

import functools
import inspect
import os

from attnpool_ref.contract.binding import with_suggestion

OWN_PACKAGE = __name__.partition(".")[0]


def without_frames(error):
    """Returns the error of a refused call without the frames of the checks and without chained exceptions.

    The environment variable ``ATTNPOOL_TRACEBACK=full`` keeps the frames.

    Args:
      error: the exception, which is changed in place. Raise the result, with ``from None``.
    """
    error.__cause__ = error.__context__ = None
    return error if os.environ.get("ATTNPOOL_TRACEBACK") == "full" else error.with_traceback(None)


def with_short_traceback(function):
    """Decorates a public function or method: tracebacks of its refusals show only its own frame of the package.

    A refusal is a TypeError, a ValueError or an OSError that the package itself raises. An error from another library,
    or from the caller's function, keeps its whole traceback.
    """
    packages = {OWN_PACKAGE, function.__module__.partition(".")[0]}

    @functools.wraps(function)
    def checked_function(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, OSError) as error:
            if _raising_package(error) not in packages:
                raise
            if str(error).startswith(f"{function.__qualname__}() "):  # Python refused the arguments
                parameters = inspect.signature(function).parameters
                message = with_suggestion(str(error), kwargs, [name for name in parameters if name != "self"])
                options = [f"`{name}=`" for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
                if message.endswith(" were given") and options:
                    message += f"; passed by keyword: {', '.join(options)}"
                error.args = (message,)
            raise without_frames(error) from None

    return with_frame_name(checked_function, function)


def with_frame_name(wrapper, function):
    """Names the wrapper's frame in tracebacks after the function, and returns the wrapper."""
    wrapper.__code__ = wrapper.__code__.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    return wrapper


def _raising_package(error):
    """Returns the name of the package in which an exception was raised."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
