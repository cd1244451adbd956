"""Right implementations in JAX by other routes are accepted as they are called."""

import pytest

pytest.importorskip("jax")

from conformance.foreign.routes_in_jax import ROUTES

from attnpool_ref import conformance

FEW = {"shapes": ("length 0",), "long": False, "partial": False}
CHEAP = ("scaled_dot_score: a static scale", "mean_pooling: where, sum, count")


def assert_accepted(route, **options):
    chosen = ROUTES[route]
    dtypes = tuple(dtype for dtype in ("float32", "float64") if dtype in chosen.dtypes)
    report = conformance.judge(chosen.function, only=(chosen.row,), dtypes=dtypes, **options, **chosen.calls)
    assert report.verdict == "pass", report.smallest_failure or report.rows[0].partial


@pytest.mark.parametrize("route", CHEAP)
def test_a_function_in_jax_is_accepted(route):
    assert_accepted(route, **FEW)


@pytest.mark.thorough
@pytest.mark.parametrize("route", ROUTES)
def test_a_function_in_jax_by_another_route_is_accepted(route):
    assert_accepted(route)
