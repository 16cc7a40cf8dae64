"""Opcodes: classes, access widths, register tuples."""

import pytest

from warpstack import _core


def decoded(opcode, num_sources=3):
    return _core.decode_opcode(opcode, num_sources)


@pytest.mark.parametrize(
    ("opcode", "width"),
    [
        ("LDG.E", 4),
        ("LDG.E.SYS", 4),
        ("LDG.E.64", 8),
        ("LDG.E.128.CONSTANT.SYS", 16),
        ("LDG.E.U8", 1),
        ("LDG.E.S8", 1),
        ("LDG.E.U16", 2),
        ("LDG.E.LTC128B.64", 8),
        ("LDGSTS.E.BYPASS.LTC128B.128", 16),
        ("LDGSTS.E.LTC128B", 4),
        ("STG.E.EF.128", 16),
        ("LDS.U.128", 16),
        ("LDSM.16.M88.4", 16),
        ("LDSM.16.MT88.2", 8),
        ("LDSM.16.M88", 4),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", 4),
        ("RED.E.ADD.F64.RN.STRONG.GPU", 8),
        ("RED.E.ADD.F16x2.RN.STRONG.GPU", 4),
        ("ATOMG.E.CAS.64.STRONG.GPU", 8),
        ("ATOMS.POPC.INC.32", 4),
        ("LD.E.64", 8),
        ("STL.64", 8),
        ("FADD", 0),
        ("LDC.64", 0),
        ("TEX.SCR.LL", 0),
    ],
)
def test_bytes_per_thread(opcode, width):
    assert decoded(opcode)["width"] == width


@pytest.mark.parametrize(
    ("opcode", "op_class", "space", "kind"),
    [
        ("IADD3.X", "integer", "none", "none"),
        ("ISETP.GE.AND", "integer", "none", "none"),
        ("HFMA2.MMA", "fp16", "none", "none"),
        ("FFMA.FTZ", "fp32", "none", "none"),
        ("DFMA", "fp64", "none", "none"),
        ("MUFU.RSQ64H", "sfu", "none", "none"),
        ("I2F.U32.RP", "sfu", "none", "none"),
        ("HMMA.16816.F32", "tensor", "none", "none"),
        ("ULDC.64", "constant_load", "none", "none"),
        ("UIADD3.X", "uniform", "none", "none"),
        ("SHFL.IDX", "shuffle", "none", "none"),
        ("TEX.SCR.B.LZ", "texture", "none", "none"),
        ("BAR.SYNC.DEFER_BLOCKING", "barrier", "none", "none"),
        ("BRA", "control", "none", "none"),
        ("LDG.E", "memory", "global", "load"),
        ("STL", "memory", "local", "store"),
        ("LDS", "memory", "shared", "load"),
        ("LD.E", "memory", "generic", "load"),
        ("ATOMG.E.ADD", "memory", "global", "atomic"),
        ("RED.E.ADD", "memory", "global", "reduction"),
        ("ATOMS.ADD", "memory", "shared", "atomic"),
        ("LDGSTS.E.BYPASS.128", "memory", "global", "async_copy"),
        ("NOTANOPCODE.X", "unknown", "none", "none"),
        ("", "unknown", "none", "none"),
        (".E.64", "unknown", "none", "none"),
    ],
)
def test_classes(opcode, op_class, space, kind):
    found = decoded(opcode)
    assert (found["op_class"], found["space"], found["kind"]) == (op_class, space, kind)


@pytest.mark.parametrize(
    ("opcode", "operator"),
    [
        ("LDG.E", "none"),
        ("LDG.E.SYS", "none"),  # what Volta calls every plain load
        ("LDG.E.CONSTANT", "read_only"),
        ("LDG.E.STRONG.GPU", "bypass_l1"),
        ("LDG.E.STRONG.SYS", "bypass_l1"),
        ("LD.E.STRONG.CTA", "none"),
        ("LDGSTS.E.BYPASS.LTC128B.128", "bypass_l1"),
        ("LDG.E.EF.64", "evict_first"),
        ("LDG.E.64.CONSTANT", "read_only"),
        ("LDG.E.CI", "read_only"),
        ("LDG.E.EF.CONSTANT", "evict_first"),
        ("LDG.E.CONSTANT.STRONG.GPU", "bypass_l1"),
        ("STG.E.EL", "evict_last"),
    ],
)
def test_cache_operators(opcode, operator):
    assert decoded(opcode)["cache_operator"] == operator


@pytest.mark.parametrize(
    ("opcode", "destination", "sources"),
    [
        ("IADD3", 1, [1, 1, 1]),
        ("IMAD.WIDE", 2, [1, 1, 2]),
        ("IMAD.WIDE.U32", 2, [1, 1]),
        ("IMAD.HI.U32", 1, [1, 1, 1]),
        ("DADD", 2, [2, 2]),
        ("DSETP.GT.AND", 2, [2, 2]),
        ("MUFU.RCP64H", 1, [1]),
        ("F2F.F64.F32", 2, [1]),
        ("F2F.F32.F64", 1, [2]),
        ("F2F.FTZ.F32.F64", 1, [2]),
        ("F2I.FTZ.U32.TRUNC.NTZ", 1, [1]),
        ("F2I.S64.F64.TRUNC", 2, [2]),
        ("I2F.F64", 2, [1]),
        ("I2F.F64.U64", 2, [2]),
        ("I2F.S64", 1, [2]),
        ("CS2R", 2, []),
        ("CS2R.32", 1, []),
        ("LDG.E", 1, [2]),
        ("LDG.E.128", 4, [2]),
        ("LDG.128", 4, [1]),
        ("LDS.128", 4, [1]),
        ("LDL.64", 2, [1]),
        ("LDC.64", 2, [1]),
        ("STG.E.128", 4, [2, 4]),
        ("STS.64", 2, [1, 2]),
        ("ATOMG.E.CAS.64", 2, [2, 2, 2]),
        ("LDGSTS.E.BYPASS.128", 4, [1, 2]),
        ("LDSM.16.M88.4", 4, [1]),
        ("LDSM.16.M88.2", 2, [1]),
        ("HMMA.16816.F32", 4, [4, 2, 4]),
        ("HMMA.16816.F16", 2, [4, 2, 2]),
        ("HMMA.1688.F32", 4, [2, 1, 4]),
        ("HMMA.1688.F32.TF32", 4, [4, 2, 4]),
        ("IMMA.16832.S8.S8", 4, [4, 2, 4]),
        ("IMMA.8816.S8.S8", 2, [1, 1, 2]),
        ("HGMMA.64x128x16.F32", 64, [1, 1, 64]),
        ("DMMA.884", 4, [2, 2, 4]),
    ],
)
def test_register_tuples(opcode, destination, sources):
    found = decoded(opcode, len(sources))
    assert found["destination_registers"] == destination
    assert found["source_registers"] == sources
