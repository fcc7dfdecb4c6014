// SPDX-License-Identifier: MIT
#include "profile/growth/growth_history.h"

const char *growth_class_name(enum growth_class class)
{
    static const char *const names[GROWTH_COUNT] = {
        [GROWTH_UNKNOWN] = "unknown", [GROWTH_GROWING] = "growing",
        [GROWTH_STOPPED] = "stopped", [GROWTH_START_UP] = "start_up",
        [GROWTH_BOUNDED] = "bounded", [GROWTH_SAWTOOTH] = "sawtooth",
        [GROWTH_BURSTS] = "bursts",   [GROWTH_LATE] = "late",
        [GROWTH_ONCE] = "once",
    };
    return class < GROWTH_COUNT ? names[class] : "unknown";
}

const char *growth_confidence_name(enum growth_confidence confidence)
{
    static const char *const names[CONFIDENCE_COUNT] = {"none", "low", "medium", "high"};
    return confidence < CONFIDENCE_COUNT ? names[confidence] : "none";
}
