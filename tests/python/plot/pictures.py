"""A picture of each function of `warpstack.plot`, for tests that hold all of them to a rule."""

import functools

import pandas as pd

import warpstack as ws

X, Y = "num_sms", "dram_bandwidth_gbs"
MODELS = ["gpumech", "mdm", "closed_network"]


@functools.cache
def kernels():
    return [
        ws.patterns.strided(gs, blocks=56, iterations=2, launch_id=i) for i, gs in ((1, 1), (2, 32))
    ]


@functools.cache
def predictions():
    return ws.predict(ws.App(kernels()), "pascal-mdm", MODELS)


@functools.cache
def sweep():
    return ws.sweep(
        kernels()[1], "pascal-mdm", {X: [14, 28, 56], Y: [240, 480]}, MODELS, cache=False
    )


@functools.cache
def one_at_a_time():
    points = ws.exploration.one_at_a_time(
        "pascal-mdm",
        {X: [14, 56], Y: [240, 960], "l1_mshrs": [16, 64], "noc_bandwidth_gbs": [500, 2000]},
    )
    return ws.sweep(kernels()[1], "pascal-mdm", points, MODELS[:2], cache=False)


@functools.cache
def validated():
    measured = predictions().drop_duplicates("kernel")[["kernel", "name", "cycles"]]
    return ws.validate(predictions(), measured.assign(cycles=measured["cycles"] * [1.3, 0.8]))


@functools.cache
def validated_workloads():
    """Return predictions of applications of both classes against made-up references."""
    predicted = pd.concat(
        ws.predict(ws.App(kernels(), name=app), "pascal-mdm", MODELS).assign(
            app=app, cycles=lambda table, i=i: table["cycles"] * (1 + i)
        )
        for i, app in enumerate(
            ["bfs", "b+tree", "cfd", "2d-convolution", "pageview-count", "srad"]
        )
    )
    measured = predicted.drop_duplicates(["app", "kernel"])[["app", "kernel", "name", "cycles"]]
    factors = [1.3, 0.8, 1.1, 0.6, 2.0, 0.9] * 2
    return ws.validate(predicted, measured.assign(cycles=measured["cycles"] * factors))


@functools.cache
def rooflines():
    return ws.models.roofline(kernels()[1], "pascal-mdm", MODELS[:2])


@functools.cache
def clocks():
    return ws.models.dvfs(kernels()[1], "pascal-mdm", [0.7, 1.0, 1.4], MODELS)


@functools.cache
def distances():
    return {
        f"stride {n}": ws.memory.reuse_profile(kernel, "pascal-mdm")
        for n, kernel in enumerate(kernels(), 1)
    }


@functools.cache
def samples():
    return ws.simulate(kernels()[1], "pascal-mdm", timeline=True).timeline


@functools.cache
def programs():
    """Return two kernels in two streams, each behind a copy."""
    table = pd.DataFrame(
        {
            "operation": ["copy", "copy", "kernel", "kernel", "device_synchronize"],
            "stream": [1, 2, 1, 2, -1],
            "kernel": [-1, -1, 0, 1, -1],
            "direction": ["HtoD", "HtoD", "", "", ""],
            "bytes": [1 << 20, 1 << 20, 0, 0, 0],
            "pinned": True,
        }
    )
    return ws.timeline(ws.App(kernels()[:2]), "pascal-mdm", operations=table)


@functools.cache
def compared_programs():
    """Return the same beside a profile in which everything took half as long again."""
    measured = programs().table.query("engine != ''")
    times = {name: measured[name] * 1.5 for name in ("start_us", "end_us")}
    columns = {"direction": ["HtoD", "HtoD", "", ""], "bytes": [1 << 20, 1 << 20, 0, 0]}
    profile = measured[["operation", "name", "stream"]].assign(**times, **columns)
    return programs().compare(profile)


@functools.cache
def three_launches():
    """Return predictions whose panels leave a place empty in a column of a paper."""
    return ws.predict(ws.App([*kernels(), kernels()[0]][:3]), "pascal-mdm", MODELS[:2])


#: Each draws with the options given.
PICTURES = {
    "cpi_stack": lambda **o: ws.plot.cpi_stack(predictions(), **o),
    "cpi_stacks": lambda **o: ws.plot.cpi_stacks(predictions(), **o),
    "cpi_stacks of three": lambda **o: ws.plot.cpi_stacks(three_launches(), **o),
    "time_stack": lambda **o: ws.plot.time_stack(predictions(), **o),
    "axis_stacks": lambda **o: ws.plot.axis_stacks(sweep(), X, where={Y: 480}, **o),
    "curves": lambda **o: ws.plot.curves(sweep(), X, where={Y: 480}, **o),
    "speedup": lambda **o: ws.plot.speedup(sweep(), X, baseline={X: 28, Y: 480}, **o),
    "heat_map": lambda **o: ws.plot.heat_map(sweep(), X, Y, model="mdm", **o),
    "bottlenecks": lambda **o: ws.plot.bottlenecks(sweep(), X, Y, model="mdm", **o),
    "pareto": lambda **o: ws.plot.pareto(sweep(), f"{X} + {Y} / 10", **o),
    "sensitivity": lambda **o: ws.plot.sensitivity(one_at_a_time(), **o),
    "dvfs": lambda **o: ws.plot.dvfs(clocks(), **o),
    "power": lambda **o: ws.plot.dvfs(clocks(), power_watts=lambda f: 40 + 60 * f**3, **o),
    "roofline": lambda **o: ws.plot.roofline(rooflines(), **o),
    "stack_distances": lambda **o: ws.plot.stack_distances(
        distances(), capacities={"L1": 256}, **o
    ),
    "timeline": lambda **o: ws.plot.timeline(samples(), **o),
    "operations": lambda **o: ws.plot.operations(programs(), **o),
    "operations of both": lambda **o: ws.plot.operations(compared_programs(), **o),
    "errors": lambda **o: ws.plot.errors(validated(), **o),
    "agreement": lambda **o: ws.plot.agreement(validated(), **o),
    "agreement of many": lambda **o: ws.plot.agreement(validated_workloads(), **o),
    "scatter": lambda **o: ws.plot.scatter(validated(), **o),
}


def figure_of(drawn):
    return drawn if hasattr(drawn, "add_subplot") else drawn.figure
