import unittest

from intervals import count, merge


class MergeTest(unittest.TestCase):
    def test_ranges_that_touch_become_one(self):
        self.assertEqual(merge([(1, 2), (3, 5)]), [(1, 5)])

    def test_a_range_inside_another_changes_nothing(self):
        self.assertEqual(merge([(1, 9), (3, 4)]), [(1, 9)])


class CountTest(unittest.TestCase):
    def test_numbers_count_once(self):
        self.assertEqual(count([(1, 9), (3, 4), (20, 20)]), 10)


if __name__ == "__main__":
    unittest.main()
