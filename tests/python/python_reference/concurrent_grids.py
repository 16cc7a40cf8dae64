"""Grids that run at the same time, block by block and SM by SM."""

import math

from warpstack import _core

#: What an SM has and a block takes: blocks, warps, threads, registers, shared memory.
NUM_LIMITS = 5
#: Ends of blocks that are no further apart than this share of their time are one.
NEAR_ENDS = 0.02


def play(grids, classes, num_sms, room, most_grids, mshrs, replacement, interval, paces):
    """Return the start and the end of each grid.

    grids: [(class, priority, after)], with `after` the grids that must have ended; classes: [(duration, ends,
    blocks, instructions, need, CustomerClass)]; replacement: cycles from the end of a block until others have
    its room; interval: cycles between the starts of two blocks; paces: of each class the cycles of an
    instruction beside the network, the scale of its times, and its ends.
    """
    work = [one[3] for one in classes]
    now, started, ended = 0.0, {}, {}
    unstarted = [classes[c][2] for c, *_ in grids]
    free = [list(room) for _ in range(num_sms)]
    # Since when an SM has its room, and who is next of those with the same: numbers as they came.
    since, numbers, number = [0.0] * num_sms, [0] * num_sms, 0
    running = []  # [grid, SM, instructions left]
    came = {}
    given, line_free = (
        None,
        0.0,
    )  # whose block started last, and when the next may that is of another
    emptying = []  # [when, SM, room]
    ending = {}  # when grids end that have left their places

    def in_line():
        waiting = [
            g
            for g in came
            if unstarted[g]
            and (g in started or len(started) - len(ended) < (most_grids or math.inf))
        ]
        return min(waiting, key=lambda g: (-grids[g][1], came[g]), default=None)

    while len(ended) < len(grids):
        for g, (_, _, after) in enumerate(grids):
            if g not in came and all(before in ended for before in after):
                came[g] = len(came)
        while (g := in_line()) is not None:
            if g != given and now < line_free:
                break
            need = classes[grids[g][0]][4]
            fits = [
                sm
                for sm in range(num_sms)
                if all(has >= takes for has, takes in zip(free[sm], need, strict=True))
            ]
            if not fits:
                break
            sm = min(fits, key=lambda s: (since[s], numbers[s], s))
            free[sm] = [has - takes for has, takes in zip(free[sm], need, strict=True)]
            number += 1
            numbers[sm] = number
            started.setdefault(g, now)
            unstarted[g] -= 1
            running.append([g, sm, work[grids[g][0]]])
            given, line_free = g, max(line_free, now) + interval
        held = [[0.0] * len(classes) for _ in range(num_sms)]
        for g, sm, _ in running:
            held[sm][grids[g][0]] += 1
        cycles = _core.mixed_network_times(
            [one[5] for one in classes], [(1.0, blocks) for blocks in held], mshrs
        )
        rate = []
        for g, sm, _ in running:
            beside, scale, _ = paces[grids[g][0]]
            rate.append(1 / scale / (cycles[sm * len(classes) + grids[g][0]] + beside))
        ends = [left / speed for (*_, left), speed in zip(running, rate, strict=True)]
        passed = math.inf
        if ends:
            # Blocks of a grid that end nearly together leave their room together.
            first = min(range(len(ends)), key=lambda r: ends[r])
            grid = running[first][0]
            nearly = ends[first] + NEAR_ENDS * work[grids[grid][0]] / rate[first]
            is_mate = [running[r][0] == grid and ends[r] <= nearly for r in range(len(ends))]
            passed = max(end for end, mate in zip(ends, is_mate, strict=True) if mate)
            others = [end for end, mate in zip(ends, is_mate, strict=True) if not mate]
            passed = min([passed, *others])
        passed = min(
            [passed]
            + [end - now for end in ending.values()]
            + [free_at - now for free_at, *_ in emptying]
            + ([line_free - now] if now < line_free and any(unstarted[g] for g in came) else [])
        )
        now += passed
        number += 1
        still = []
        for one, speed in zip(running, rate, strict=True):
            g, sm, _ = one
            one[2] -= passed * speed
            if one[2] > 1e-9 * work[grids[g][0]]:
                still.append(one)
                continue
            scale = paces[grids[g][0]][1]
            emptying.append([now + scale * replacement, sm, classes[grids[g][0]][4]])
        running = still
        for free_at, sm, room_left in emptying:
            if free_at <= now:
                free[sm] = [has + takes for has, takes in zip(free[sm], room_left, strict=True)]
                since[sm], numbers[sm] = now, number
        emptying = [one for one in emptying if one[0] > now]
        for g in started:
            if g in ended or g in ending or unstarted[g] or any(one[0] == g for one in running):
                continue
            alone = started[g] + classes[grids[g][0]][0]
            ending[g] = max(now + paces[grids[g][0]][2], alone)
        for g in [g for g, end in ending.items() if end <= now]:
            ended[g] = ending.pop(g)
        if len(started) == len(ended):
            emptying = []
            free = [list(room) for _ in range(num_sms)]
            since, numbers = [now] * num_sms, [number] * num_sms
    return [(started[g], ended[g]) for g in range(len(grids))]
