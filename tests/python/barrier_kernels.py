"""Random kernels whose warps meet at barriers of some of them, and always get through."""

import numpy as np

import warpstack as ws

WORK = ("FADD", "IADD3", "MUFU.RCP", "DADD")
WAITS = ("BAR.SYNC.DEFER_BLOCKING", "BAR.RED.POPC", "bar.sync", "barrier.cta.red.and.pred")
ARRIVALS = ("BAR.ARV", "bar.arrive", "barrier.cta.arrive")


def random_kernel(rng, blocks=3):
    """Return a kernel of random meetings.

    In each some warps come to a barrier, some of which wait. A number is used again only after all have
    met, so that nobody arrives before the others have left. Some warps exit early, some with an arrival.
    """
    warps = int(rng.integers(2, 9))
    k = ws.patterns.KernelBuilder("meetings", grid=blocks, block=32 * warps)
    warp = k.thread // 32 % warps

    def emit(opcode, who, **registers):
        k.emit(opcode, where=np.isin(warp, list(who)), **registers)

    def work(who):
        for one in who:
            for _ in range(int(rng.integers(0, 4))):
                opcode = str(rng.choice(WORK))
                register = int(rng.integers(4, 8))
                emit(opcode, [one], dst=register, src=(register, 4))
            if rng.random() < 0.3:
                address = 0x10000 + 4 * k.thread + 0x4000 * int(rng.integers(0, 8))
                emit("LDG.E", [one], dst=10, src=2, address=address)
                emit("FADD", [one], dst=4, src=(10, 4))

    there = list(range(warps))
    numbers = list(rng.permutation(np.arange(1, 16)))
    work(there)
    for _ in range(int(rng.integers(3, 25))):
        if not numbers or rng.random() < 0.15:
            emit(str(rng.choice(WAITS)) + str(rng.choice(["", ".id0"])), there)
            numbers = list(rng.permutation(np.arange(1, 16)))
            if len(there) > 2 and rng.random() < 0.3:
                there.remove(int(rng.choice(there)))  # it has met them for the last time
        else:
            number = numbers.pop()
            if rng.random() < 0.2:
                emit(f"{rng.choice(WAITS)}.id{number}", there)
            else:
                who = rng.permutation(there)[: int(rng.integers(1, len(there) + 1))]
                first = int(rng.integers(1, len(who) + 1))
                count = 32 * len(who)
                emit(f"{rng.choice(WAITS)}.id{number}.{count}", who[:first])
                if first < len(who):
                    emit(f"{rng.choice(ARRIVALS)}.id{number}.{count}", who[first:])
        work(there)
    if rng.random() < 0.5:
        k.emit("EXIT")
    elif numbers:  # the last that warps do is to arrive
        emit(f"BAR.ARV.id{numbers[0]}.{32 * len(there)}", there[1:])
        emit(f"BAR.SYNC.id{numbers[0]}.{32 * len(there)}", there[:1])
        emit("FADD", there[:1], dst=4, src=4)
    return k.build()
