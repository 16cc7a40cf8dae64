"""Shared by the figures of MDM's first version."""

PAPER = "Wang et al., Modeling Emerging Memory-Divergent GPU Applications, CAL 2019"
#: Workloads that came with the later paper.
ABSENT = ("alexnet", "resnet")
MODELS = ("gpumech", "gpumech_plus", "mdm_queue", "mdm_mshr", "mdm_cal2019", "closed_network")
